//! The directory and its znodes, as one server has them.

/// A transaction, or an order of creation.
pub type Zxid = u16;

/// The last number of the create count. It is given out again and again.
pub const LAST: u16 = 200;

/// The kind of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    Lock,
    Read,
    Write,
    Candidate,
}

impl Label {
    /// True if holds of these two labels may overlap.
    pub fn shares(self, other: Label) -> bool {
        self == Label::Read && other == Label::Read
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Znode {
    /// The transaction that created it. It stands for the name, which is unique.
    pub czxid: Zxid,
    /// The number at the end of its name.
    pub number: u16,
    pub label: Label,
    /// The contender whose session owns it.
    pub owner: u8,
    /// True if its name says that only its owner can write to it.
    pub marks: bool,
    /// The transaction that last wrote to it.
    pub mzxid: Zxid,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Make,
    /// The directory is deleted, because it is empty.
    Reap,
    Create(Znode),
    /// A znode's data is set.
    Write(Zxid),
    Delete(Zxid),
    /// The directory's data names this znode as the successor.
    Name(Zxid),
}

/// What a watch reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The contender's own znode is deleted, or written to.
    Own { deleted: bool },
    /// The predecessor's znode is deleted, or written to.
    Predecessor { deleted: bool },
}

/// The directory on one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree {
    /// The last transaction that the server has applied.
    pub zxid: Zxid,
    pub exists: bool,
    pub creates: u16,
    /// The contenders, in the order of their creation.
    pub znodes: Vec<Znode>,
    /// The successor that the directory's data names.
    pub successor: Option<Zxid>,
}

impl Tree {
    /// An empty directory whose next znode gets this number.
    pub fn new(first: u16) -> Tree {
        Tree {
            zxid: 0,
            exists: true,
            creates: first,
            znodes: Vec::new(),
            successor: None,
        }
    }

    pub fn get(&self, czxid: Zxid) -> Option<&Znode> {
        self.znodes.iter().find(|znode| znode.czxid == czxid)
    }

    pub fn next_number(&self) -> u16 {
        self.creates.min(LAST)
    }

    pub fn apply(&mut self, zxid: Zxid, operation: Operation) {
        match operation {
            Operation::Make => {
                *self = Tree {
                    zxid: self.zxid,
                    ..Tree::new(0)
                };
            }
            Operation::Reap => {
                self.exists = false;
                self.creates = 0;
                self.successor = None;
            }
            Operation::Create(znode) => {
                self.creates = (self.creates + 1).min(LAST);
                self.znodes.push(znode);
            }
            Operation::Write(czxid) => {
                let written = self.znodes.iter_mut().find(|znode| znode.czxid == czxid);
                if let Some(znode) = written {
                    znode.mzxid = zxid;
                }
            }
            Operation::Delete(czxid) => self.znodes.retain(|znode| znode.czxid != czxid),
            Operation::Name(czxid) => self.successor = Some(czxid),
        }
    }
}
