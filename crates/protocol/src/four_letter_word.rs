/// A command of four letters, which an operator sends in place of a handshake.
///
/// The server answers with text and closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FourLetterWord([u8; 4]);

impl FourLetterWord {
    /// All words that Apache's server knows.
    pub const ALL: [FourLetterWord; 18] = [
        FourLetterWord(*b"conf"),
        FourLetterWord(*b"cons"),
        FourLetterWord(*b"crst"),
        FourLetterWord(*b"dirs"),
        FourLetterWord(*b"dump"),
        FourLetterWord(*b"envi"),
        FourLetterWord(*b"gtmk"),
        FourLetterWord(*b"hash"),
        FourLetterWord(*b"isro"),
        FourLetterWord(*b"mntr"),
        FourLetterWord(*b"ruok"),
        FourLetterWord(*b"srst"),
        FourLetterWord(*b"srvr"),
        FourLetterWord(*b"stat"),
        FourLetterWord(*b"stmk"),
        FourLetterWord(*b"wchc"),
        FourLetterWord(*b"wchp"),
        FourLetterWord(*b"wchs"),
    ];

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
