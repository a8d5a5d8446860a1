"""Sentences around values, and hard documents without any; some for development, others held out."""

from __future__ import annotations

from collections.abc import Mapping

# By type: sentences for development, and those held out. {} is the value.
TEMPLATES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "credit_card": (
        (
            "My card is {}, valid until 11/29.",
            "He paid with {} at the counter.",
            "Visa {} was declined.",
            "card no: {}",
        ),
        (
            "Charge it to {} please.",
            "The number on the front reads {}.",
            "Use {} for the hotel, and keep the receipt.",
            "cc={}",
        ),
    ),
    "iban": (
        ("Send the rent to {} by Friday.", "IBAN: {}", "Her account {} was closed."),
        ("Refunds go to {}.", "please transfer 40 EUR to {} today", "The landlord's bank details are {}, BIC follows."),
    ),
    "nhs_number": (
        ("My NHS number is {}.", "NHS no. {}", "Patient, NHS {}, seen on Monday."),
        (
            "The letter gives her NHS number as {}.",
            "NHS Number: {} (registered in Leeds)",
            "Please quote NHS {} at reception.",
        ),
    ),
    "aadhaar": (
        ("Aadhaar: {}", "His Aadhaar number is {}.", "Linked Aadhaar {} to the account."),
        ("Her aadhaar card says {}.", "Please verify Aadhaar no {} with UIDAI.", "I gave them my Aadhaar, {}."),
    ),
    "bank_routing": (
        ("Routing number {}", "the routing number is {}", "ABA {} for the wire"),
        ("For direct deposit use routing {}.", "Bank routing no. {}", "Their ABA routing number: {}."),
    ),
    "tfn": (
        ("My TFN is {}.", "Tax file number: {}", "TFN {} was lodged."),
        ("She lost the letter with her tax file number, {}.", "tfn={}", "Give payroll your TFN ({})."),
    ),
    "medicare": (
        ("Medicare {}", "My Medicare number is {}.", "Medicare card no. {}"),
        ("The child is on Medicare card {}.", "Her Medicare: {}", "Bring the Medicare card ({}) along."),
    ),
    "sin": (
        ("My SIN is {}.", "Social insurance number: {}", "SIN {}"),
        ("The form asks for his social insurance number, {}.", "employee SIN: {}", "SIN ({}) verified."),
    ),
    "tax_id_de": (
        ("Meine Steuer-ID ist {}.", "IdNr. {}", "Steueridentifikationsnummer: {}"),
        ("Die Steuer-ID lautet {}.", "Her German tax ID is {}.", "Bitte Steuer-ID {} angeben."),
    ),
    "nir": (
        ("Numéro de sécurité sociale : {}", "Son NIR est {}.", "NIR {}"),
        ("Mon numéro de sécu, c'est {}.", "Assurée sous le {} depuis 2019.", "n° SS {} (attestation jointe)"),
    ),
    "dni": (
        ("Mi DNI es {}.", "DNI {}", "con DNI {}, vecino de Lugo"),
        ("Firmado por Marta Gil, {}.", "D.N.I.: {}", "El titular ({}) no acudió."),
    ),
    "nie": (
        ("NIE {}", "Mi NIE es {}.", "con NIE {}"),
        ("Her Spanish residence number is {}.", "N.I.E.: {}", "extranjero {}, Madrid"),
    ),
    "codice_fiscale": (
        ("Codice fiscale: {}", "Il mio codice è {}.", "C.F. {}"),
        ("Luca Bianchi ({}) ha firmato.", "cf={}", "Her Italian tax code is {}."),
    ),
    "cpf": (
        ("CPF: {}", "Meu CPF é {}.", "CPF {}"),
        ("O cliente {} ligou ontem.", "cpf do titular: {}", "Inscrito sob {}."),
    ),
    "cnpj": (
        ("CNPJ {}", "A empresa tem CNPJ {}.", "CNPJ: {}"),
        ("Nota emitida por {}.", "fornecedor {}", "Razão social e {}."),
    ),
    "nric": (
        ("NRIC: {}", "My NRIC is {}.", "NRIC no. {}"),
        ("Holder {} may enter.", "IC number {}", "Tan Wei ({}) collected it."),
    ),
    "resident_id": (
        ("身份证 {}", "Resident id {}", "His ID card number is {}."),
        ("持证人 {} 已登记", "The guest showed {} at check-in.", "ID: {}"),
    ),
    "crypto_address": (
        ("Send the coins to {}.", "BTC {}", "my wallet is {}"),
        ("Donations: {}", "He moved 0.2 BTC to {} last night.", "address={}"),
    ),
    "email": (
        ("Write to {}.", "e-mail: {}", "<{}> wrote:", "cc {} and the team"),
        ("Reach Ana at {}, she answers fast.", "mailto:{}", "It bounced from {}!", "From: Bo Berg <{}>"),
    ),
    "phone": (
        (
            "Call me at {}.",
            "My phone number is {}.",
            "Tel. {}",
            "Text me: {}",
            "Her mobile is {}, if it is urgent.",
            "Fax {}",
        ),
        (
            "You can get hold of Ines under {} after six.",
            "Dr. Weber's practice: {}",
            "{} is the new number of the plumber.",
            "Ring the school on {} before nine.",
            "WhatsApp {} works best for grandma.",
            "Phone: {} / ask for Marco",
            "Leave a voicemail at {}, please.",
            "The vet ({}) opens at eight.",
        ),
    ),
    "ip_address": (
        ("Logged in from {}.", "The server is at {}.", "host {} unreachable"),
        ("Block {} at the firewall.", "client={} status=403", "His home address on the net is {}."),
    ),
    "mac_address": (
        ("MAC {}", "The router's card is {}.", "device {} joined"),
        ("ether {} up", "Allow {} on the guest network.", "wlan0 {}"),
    ),
    "ssn": (
        ("SSN: {}", "My social security number is {}.", "ssn {}"),
        ("The form wants {} in box 4.", "Her social is {}.", "taxpayer {} filed late"),
    ),
    "nino": (
        ("NINO {}", "My national insurance number is {}.", "NI number: {}"),
        ("Payroll has {} for him.", "NI no. {}", "Quote {} on the form."),
    ),
    "pan": (
        ("PAN: {}", "My PAN is {}.", "PAN card {}"),
        ("Income tax PAN {} was linked.", "Permanent account number: {}", "The holder's PAN ({}) matched."),
    ),
    "api_key": (
        ("key={}", "Use {} for the bot.", 'export API_KEY="{}"'),
        ("I pasted {} into the chat by mistake.", "Authorization: Bearer {}", "token: '{}',"),
    ),
    "credential": (
        ("password: {}", "my password is {}", "DB_PASSWORD={}"),
        ("The Wi-Fi password is {}.", '"client_secret": "{}"', "pwd={}"),
    ),
    "date_of_birth": (
        ("She was born on {}.", "DOB: {}", "Date of birth {}"),
        ("Born {}, lives in Graz.", "His date of birth is {}.", "dob={}"),
    ),
    "passport": (
        ("Passport {}", "My passport number is {}.", "passport no. {}"),
        ("She renewed her passport, {}, in May.", "Travelling on passport {}.", "Passport number: {}"),
    ),
}

# Documents without a finding: {name} is a number of that kind, made by `documents`.
NEGATIVES: tuple[tuple[str, ...], tuple[str, ...]] = (
    (
        "Order {n10} shipped on {date}.",
        "Ticket #{n9} was closed.",
        "Invoice {n12}, total {price}.",
        "ts={epoch} level=info",
        "Request {uuid} took 12 ms.",
        "commit {sha1}",
        "upgrade to version {version}",
        "It costs {price}.",
        "lat {lat}, lon {lon}",
        "Tracking number {n16}",
        "sha256:{sha256}",
        "ISBN {isbn}",
        "at {epochms} the job ended",
        "for (int i = 0; i < {n4}; i++) sum += a[i];",
        "The meeting of {date} moved to {time}.",
        "Part number {part}",
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6",
        "Batch {n8} passed.",
    ),
    (
        "Your order no. {n10} has been confirmed.",
        "case {n9}: waiting for parts",
        "Rechnung Nr. {n11} vom {date}",
        "[{iso}] worker {n4} started",
        "trace {uuid} span {hex16}",
        "reverted {hex8} after the merge",
        "runs {version} on {version4}",
        "raised from {price} to {price}",
        "The cabin is at {lat}, {lon}.",
        "Parcel {n16} is on its way.",
        'etag "{md5}"',
        "Serial number {n12}",
        "epoch {epoch}, offset {n5}",
        "assert f(x) == {n7}  # not {n6}",
        "Booked from {date} to {date}, room {n3}.",
        "Model {part}, {n4} rpm, {n3}.{n2} kg",
        "The file has {n8} rows and {n10} bytes.",
        "GET /items/{n10}?page={n2} 200 {n5}",
        "color: #{hex6}; width: {n3}.{n2}px",
        "score {n3}-{n3}, attendance {n5}",
        "transaction {n15} settled",
        '{{"id": {n10}, "created": {epochms}}}',
        "chapter {n2}, pages {n3}-{n3}",
        "build {n9} of {date}",
        "std::array<int, {n2}> a1::b2;",
        "sensor {n4}: 21.{n2} C at {time}",
        "The years 1939-1945 and 2024-2025.",
        "flight LH{n4}, gate B{n2}, seat 14C",
        "barcode {ean}",
        "pid {n5} on port {n4}",
    ),
)

# What people write around it.
FILLERS = (
    "We talked about the garden for an hour.",
    "Marco brought the good olive oil.",
    "It rained all day, so we stayed in.",
    "The train was late again.",
    "I will think about it.",
    "She likes tea, he likes coffee.",
    "Nothing else happened.",
    "There were 12 of us at the table.",
    "The cat slept on the stove.",
    "We leave at 7:40 tomorrow.",
)
