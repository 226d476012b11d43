/// A command of four letters, which an operator sends in place of a handshake.
///
/// The server answers with text and closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourLetterWord([u8; 4]);

impl FourLetterWord {
    /// All words that Apache's server knows.
    pub const ALL: [FourLetterWord; 18] = {
        const fn word(word: &[u8; 4]) -> FourLetterWord {
            FourLetterWord(*word)
        }
        [
            word(b"conf"),
            word(b"cons"),
            word(b"crst"),
            word(b"dirs"),
            word(b"dump"),
            word(b"envi"),
            word(b"gtmk"),
            word(b"hash"),
            word(b"isro"),
            word(b"mntr"),
            word(b"ruok"),
            word(b"srst"),
            word(b"srvr"),
            word(b"stat"),
            word(b"stmk"),
            word(b"wchc"),
            word(b"wchp"),
            word(b"wchs"),
        ]
    };

    /// The word that these bytes are, if Apache's server knows it.
    pub fn from_bytes(bytes: [u8; 4]) -> Option<FourLetterWord> {
        let word = FourLetterWord(bytes);
        FourLetterWord::ALL.contains(&word).then_some(word)
    }

    /// The word as text.
    pub fn as_str(&self) -> &str {
        // All words are ASCII.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}
