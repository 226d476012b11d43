//! Records of partitions, in small pieces. A change writes only the pieces that it changes.
//!
//! A record is a map from partitions to words. Its first piece is the znode `<owner>`, the others
//! are `<owner>#1`, `<owner>#2` and so on. A partition stays in its piece as long as it is in the
//! record. So a reader that sees one piece before and another after a write sees each partition
//! either before or after it.

use std::collections::BTreeMap;
use std::fmt;

use crate::names::problem_of_partition;

/// No piece is filled beyond this. A change of one partition writes one piece.
const FULL: usize = 4 * 1024;
/// A record has no more pieces. The longest names of all partitions need fewer.
const MOST: usize = 10_000;
/// The version of what this crate writes.
const VERSION: &str = "1";
const PROGRAM: &str = "zookeeper-recipes";

/// The kind of record that a plan is.
pub(crate) const PLAN: &str = "plan";
/// The kind of record of what a worker owns.
pub(crate) const OWNED: &str = "owned";

/// A word for each partition.
pub(crate) type Lines = BTreeMap<String, String>;

/// The content of one znode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// In the first piece the number of pieces of the record, and 0 in the others.
    pub(crate) of: usize,
    pub(crate) note: String,
    pub(crate) lines: Lines,
}

/// Why a piece cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// Another version of the program wrote it.
    Version(String),
    /// What is wrong with the line of this number. The first has the number 1.
    Line(usize, String),
    Other,
}

/// What is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Record<T> {
    /// There is no record, or a part of it is missing.
    #[default]
    Missing,
    /// The path of the part that cannot be read.
    Unreadable(String, Unreadable),
    Found(T),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Version(version) => write!(
                formatter,
                "has the version {version}, and this program reads version {VERSION} only"
            ),
            Unreadable::Line(number, problem) => {
                write!(
                    formatter,
                    "has a line that cannot be read: {number}: {problem}"
                )
            }
            Unreadable::Other => formatter.write_str("was not written by this program"),
        }
    }
}

/// The name of the znode of a piece.
pub(crate) fn name(owner: &str, index: usize) -> String {
    match index {
        0 => owner.to_owned(),
        _ => format!("{owner}#{index}"),
    }
}

/// The owner and the index of a piece, by the name of its znode.
pub(crate) fn parse_name(name: &str) -> Option<(&str, usize)> {
    match name.split_once('#') {
        None => Some((name, 0)),
        Some((owner, index)) => Some((owner, index.parse().ok()?)),
    }
}

/// The first line, up to the rest that its reader knows.
pub(crate) fn head(kind: &str) -> String {
    format!("{PROGRAM} {kind} {VERSION} ")
}

/// The text after the [`head`] of its first line, and the lines after the first.
pub(crate) fn split_head<'a>(kind: &str, data: &'a [u8]) -> Result<(&'a str, &'a str), Unreadable> {
    let text = std::str::from_utf8(data).map_err(|_| Unreadable::Other)?;
    let (first, rest) = text.split_once('\n').ok_or(Unreadable::Other)?;
    if let Some(after) = first.strip_prefix(&head(kind)) {
        return Ok((after, rest));
    }
    let versioned = first.strip_prefix(&format!("{PROGRAM} {kind} "));
    let version = versioned.and_then(|it| it.split(' ').next());
    Err(version.map_or(Unreadable::Other, |it| Unreadable::Version(it.to_owned())))
}

impl Piece {
    pub(crate) fn text(&self, kind: &str) -> Vec<u8> {
        let mut text = format!("{}{} {}\n", head(kind), self.of, self.note);
        for (partition, word) in &self.lines {
            text += &format!("{word} {partition}\n");
        }
        text.into_bytes()
    }

    pub(crate) fn parse(kind: &str, data: &[u8]) -> Result<Piece, Unreadable> {
        let (first, rest) = split_head(kind, data)?;
        let (of, note) = first.split_once(' ').ok_or(Unreadable::Other)?;
        let of = of.parse().map_err(|_| Unreadable::Other)?;
        if of > MOST {
            let problem = format!("names {of} pieces, which are more than {MOST}");
            return Err(Unreadable::Line(1, problem));
        }
        let line = |(number, line): (usize, &str)| {
            let bad = |problem: String| Unreadable::Line(number, problem);
            let words = line.split_once(' ');
            let (word, partition) = words.ok_or_else(|| bad("is no word and name".to_owned()))?;
            match problem_of_partition(partition) {
                Some(problem) => Err(bad(format!("{partition:?} {problem}"))),
                None => Ok((partition.to_owned(), word.to_owned())),
            }
        };
        let lines: Result<Lines, Unreadable> = (2..).zip(rest.lines()).map(line).collect();
        Ok(Piece {
            of,
            note: note.to_owned(),
            lines: lines?,
        })
    }
}

/// The next pieces of a record. Each partition stays where it is, and the new ones fill the gaps.
pub(crate) fn arrange<'a>(
    old: impl IntoIterator<Item = &'a Piece>,
    note: &str,
    mut new: Lines,
) -> Vec<Piece> {
    let piece = |lines| Piece {
        of: 0,
        note: note.to_owned(),
        lines,
    };
    let stay = |old: &Piece| {
        let stay = old.lines.keys().filter_map(|it| new.remove_entry(it));
        piece(stay.collect())
    };
    let mut pieces: Vec<Piece> = old.into_iter().map(stay).collect();
    if pieces.is_empty() {
        pieces.push(piece(Lines::new()));
    }
    let bytes = |(partition, word): (&String, &String)| partition.len() + word.len() + 2;
    let size_of = |piece: &Piece| -> usize { piece.lines.iter().map(bytes).sum() };
    let (mut index, mut size) = (0, size_of(&pieces[0]));
    for (partition, word) in new {
        let more = bytes((&partition, &word));
        while size + more > FULL {
            index += 1;
            if index == pieces.len() {
                pieces.push(piece(Lines::new()));
            }
            size = size_of(&pieces[index]);
        }
        size += more;
        pieces[index].lines.insert(partition, word);
    }
    pieces[0].of = pieces.len();
    pieces
}

/// The records whose pieces are all there, by owner.
pub(crate) fn complete(
    pieces: impl IntoIterator<Item = (String, Piece)>,
) -> BTreeMap<String, Vec<Piece>> {
    let mut found: BTreeMap<String, BTreeMap<usize, Piece>> = BTreeMap::new();
    for (name, piece) in pieces {
        if let Some((owner, index)) = parse_name(&name) {
            let pieces = found.entry(owner.to_owned()).or_default();
            pieces.insert(index, piece);
        }
    }
    found.retain(|_, pieces| {
        let of = pieces.get(&0).map_or(usize::MAX, |first| first.of);
        pieces.len() >= of && pieces.keys().copied().take(of).eq(0..of)
    });
    let whole = found.into_iter();
    let whole = whole.map(|(owner, pieces)| (owner, pieces.into_values().collect()));
    whole.collect()
}

#[cfg(test)]
#[path = "../tests/unit/pieces.rs"]
mod tests;
