//! How a server is asked.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::word::FourLetterWord;
use crate::error::Error;

/// How long [`ask`] waits for the whole of an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the server at `address` (host and port), waiting at most [`PATIENCE`].
///
/// # Errors
///
/// [`Error::Unanswered`] when it refuses the connection, cuts it or is silent;
/// [`Error::NotServing`] when it has no quorum; [`Error::NotWhitelisted`] when it will not answer
/// this word.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), zookeeper_recipes_testkit::Error> {
/// use zookeeper_recipes_testkit::four_letter::{self, FourLetterWord};
/// use zookeeper_recipes_testkit::{Server, ServerOptions};
///
/// let server = Server::start(ServerOptions::new()).await?;
/// let answer = four_letter::ask(&server.connect_string(), FourLetterWord::Ruok).await?;
/// assert_eq!(answer, "imok");
/// # Ok(())
/// # }
/// ```
pub async fn ask(address: &str, word: FourLetterWord) -> Result<String, Error> {
    ask_within(address, word, PATIENCE).await
}

/// As [`ask`], waiting at most `patience`.
///
/// # Errors
///
/// As [`ask`].
pub async fn ask_within(
    address: &str,
    word: FourLetterWord,
    patience: Duration,
) -> Result<String, Error> {
    let conversation = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(word.as_str().as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer)
    };
    let answer = match timeout(patience, conversation).await {
        Ok(answer) => answer,
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
    };
    let answer = answer.map_err(|source| Error::Unanswered {
        address: address.to_owned(),
        question: word.as_str(),
        source,
    })?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    if answer.contains("is not currently serving requests") {
        return Err(Error::NotServing {
            address: address.to_owned(),
        });
    }
    if answer.contains("is not in the whitelist") {
        return Err(Error::NotWhitelisted {
            address: address.to_owned(),
            word,
        });
    }
    Ok(answer)
}
