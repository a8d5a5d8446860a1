//! The kinds of findings: the name of each, and the country whose pack it belongs to.

/// A kind of personal datum or secret. The order is the priority between findings of one length and one confidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs, reason = "the table below says what each one is")]
pub enum Kind {
    PrivateKey,
    Jwt,
    ApiKey,
    UrlCredentials,
    Credential,
    Email,
    Iban,
    CreditCard,
    CryptoAddress,
    MacAddress,
    IpAddress,
    UsSsn,
    UsRouting,
    Passport,
    DrivingLicence,
    UkNino,
    UkNhs,
    DeTaxId,
    FrNir,
    EsDni,
    EsNie,
    ItCodiceFiscale,
    BrCpf,
    BrCnpj,
    InAadhaar,
    InPan,
    SgNric,
    AuTfn,
    AuMedicare,
    CaSin,
    CnResidentId,
    DateOfBirth,
    Phone,
}

/// Every kind with its name and its country (ISO 3166, upper case; empty for all countries), in the order of the enum.
pub const KINDS: [(Kind, &str, &str); 33] = [
    (Kind::PrivateKey, "private_key", ""),
    (Kind::Jwt, "jwt", ""),
    (Kind::ApiKey, "api_key", ""),
    (Kind::UrlCredentials, "url_credentials", ""),
    (Kind::Credential, "credential", ""),
    (Kind::Email, "email", ""),
    (Kind::Iban, "iban", ""),
    (Kind::CreditCard, "credit_card", ""),
    (Kind::CryptoAddress, "crypto_address", ""),
    (Kind::MacAddress, "mac_address", ""),
    (Kind::IpAddress, "ip_address", ""),
    (Kind::UsSsn, "ssn", "US"),
    (Kind::UsRouting, "bank_routing", "US"),
    (Kind::Passport, "passport", ""),
    (Kind::DrivingLicence, "driving_licence", ""),
    (Kind::UkNino, "nino", "GB"),
    (Kind::UkNhs, "nhs_number", "GB"),
    (Kind::DeTaxId, "tax_id_de", "DE"),
    (Kind::FrNir, "nir", "FR"),
    (Kind::EsDni, "dni", "ES"),
    (Kind::EsNie, "nie", "ES"),
    (Kind::ItCodiceFiscale, "codice_fiscale", "IT"),
    (Kind::BrCpf, "cpf", "BR"),
    (Kind::BrCnpj, "cnpj", "BR"),
    (Kind::InAadhaar, "aadhaar", "IN"),
    (Kind::InPan, "pan", "IN"),
    (Kind::SgNric, "nric", "SG"),
    (Kind::AuTfn, "tfn", "AU"),
    (Kind::AuMedicare, "medicare", "AU"),
    (Kind::CaSin, "sin", "CA"),
    (Kind::CnResidentId, "resident_id", "CN"),
    (Kind::DateOfBirth, "date_of_birth", ""),
    (Kind::Phone, "phone", ""),
];

impl Kind {
    /// The name by which settings and placeholders know it.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (index, (kind, ..)) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, index);
        }
    }
}
