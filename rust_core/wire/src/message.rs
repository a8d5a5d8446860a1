//! A message of protobuf's wire format, written from its first byte to its last.

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const DELIMITED: u64 = 2;

/// The bytes of a message. Methods named after a type leave its default out, as proto3 does for fields without
/// presence; `put_` writes whatever the value is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    /// The bytes written so far.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Text that is not empty.
    pub fn text(&mut self, number: u32, value: &str) {
        if !value.is_empty() {
            self.put_text(number, value);
        }
    }

    /// A number other than 0.
    pub fn int(&mut self, number: u32, value: i64) {
        if value != 0 {
            self.put_int(number, value);
        }
    }

    /// A number other than 0; -0 is another.
    pub fn double(&mut self, number: u32, value: f64) {
        if value.to_bits() != 0 {
            self.put_double(number, value);
        }
    }

    /// True.
    pub fn bool(&mut self, number: u32, value: bool) {
        if value {
            self.put_bool(number, value);
        }
    }

    /// Text.
    pub fn put_text(&mut self, number: u32, value: &str) {
        self.delimited(number, value.as_bytes());
    }

    /// A number of any of the integer types but the zigzag ones; negative ones take ten bytes.
    pub fn put_int(&mut self, number: u32, value: i64) {
        self.tag(number, VARINT);
        self.varint(value as u64);
    }

    /// True or false.
    pub fn put_bool(&mut self, number: u32, value: bool) {
        self.put_int(number, i64::from(value));
    }

    /// A real number.
    pub fn put_double(&mut self, number: u32, value: f64) {
        self.tag(number, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A message within, empty or not.
    pub fn put_message(&mut self, number: u32, value: &Self) {
        self.delimited(number, &value.0);
    }

    /// A message within, as the bytes that it is.
    pub fn put_encoded(&mut self, number: u32, value: &[u8]) {
        self.delimited(number, value);
    }

    fn delimited(&mut self, number: u32, bytes: &[u8]) {
        self.tag(number, DELIMITED);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn tag(&mut self, number: u32, kind: u64) {
        self.varint(u64::from(number) << 3 | kind);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    fn written(write: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::default();
        write(&mut message);
        message.bytes().to_vec()
    }

    #[test]
    fn defaults_are_left_out() {
        let bytes = written(|message| {
            message.text(1, "");
            message.int(2, 0);
            message.double(3, 0.0);
        });
        assert_eq!(bytes, [0_u8; 0]);
    }

    #[test]
    fn the_specification_s_own_examples_come_out() {
        // Field 1 = 150, and field 2 = "testing".
        assert_eq!(written(|message| message.int(1, 150)), [0x08, 0x96, 0x01]);
        let text = written(|message| message.text(2, "testing"));
        assert_eq!(text, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
    }

    #[test]
    fn negative_numbers_take_ten_bytes_and_minus_zero_is_not_zero() {
        assert_eq!(written(|message| message.int(1, -1)).len(), 11);
        assert_eq!(written(|message| message.double(1, -0.0)).len(), 9);
    }

    #[test]
    fn a_tag_beyond_fifteen_takes_two_bytes() {
        assert_eq!(
            written(|message| message.put_bool(16, true)),
            [0x80, 0x01, 0x01]
        );
        let empty = Message::default();
        assert_eq!(written(|message| message.put_message(1, &empty)), [0x0a, 0]);
    }
}
