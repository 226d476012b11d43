//! The figures of a server and its connections, for the four-letter words.

use std::time::{Duration, Instant, SystemTime};

use zookeeper_recipes_protocol::{EventType, OpCode};

/// How long requests took to be answered, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latency {
    count: u64,
    sum: u64,
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) last: u64,
}

impl Latency {
    pub(super) fn add(&mut self, took: Duration) {
        let took = took.as_millis() as u64;
        self.least = match self.count {
            0 => took,
            _ => self.least.min(took),
        };
        self.count += 1;
        self.sum += took;
        self.most = self.most.max(took);
        self.last = took;
    }

    pub(super) fn average(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }
}

/// The sizes of responses in bytes, once there was one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) last: Option<usize>,
    pub(super) least: Option<usize>,
    pub(super) most: Option<usize>,
}

impl Sizes {
    pub(super) fn add(&mut self, bytes: usize) {
        self.last = Some(bytes);
        self.least = Some(self.least.map_or(bytes, |least| least.min(bytes)));
        self.most = self.most.max(Some(bytes));
    }
}

/// The figures of a server.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) latency: Latency,
    pub(super) responses: Sizes,
    pub(super) created: u64,
    pub(super) deleted: u64,
    pub(super) changed: u64,
    pub(super) children: u64,
    pub(super) authentication_failures: u64,
}

impl Figures {
    pub(super) fn count_event(&mut self, kind: EventType) {
        match kind {
            EventType::NodeCreated => self.created += 1,
            EventType::NodeDeleted => self.deleted += 1,
            EventType::NodeDataChanged => self.changed += 1,
            EventType::NodeChildrenChanged => self.children += 1,
            _ => {}
        }
    }
}

/// The figures of a connection.
#[derive(Clone, Debug)]
pub(super) struct ConnectionFigures {
    pub(super) established: SystemTime,
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) last_operation: &'static str,
    pub(super) last_xid: i32,
    pub(super) last_zxid: i64,
    pub(super) last_answer: Instant,
    pub(super) latency: Latency,
}

impl ConnectionFigures {
    pub(super) fn new() -> ConnectionFigures {
        ConnectionFigures {
            established: SystemTime::now(),
            received: 0,
            sent: 0,
            last_operation: "NA",
            last_xid: -1,
            last_zxid: -1,
            last_answer: Instant::now(),
            latency: Latency::default(),
        }
    }
}

/// The name of an operation, as Apache's server has it in its answer to `cons`.
pub(super) fn operation_name(opcode: OpCode) -> &'static str {
    match opcode {
        OpCode::Create | OpCode::Create2 | OpCode::CreateContainer | OpCode::CreateTtl => "CREA",
        OpCode::Delete => "DELE",
        OpCode::Exists => "EXIS",
        OpCode::GetData => "GETD",
        OpCode::SetData => "SETD",
        OpCode::GetAcl => "GETA",
        OpCode::SetAcl => "SETA",
        OpCode::GetChildren | OpCode::GetChildren2 => "GETC",
        OpCode::Sync => "SYNC",
        OpCode::Ping => "PING",
        OpCode::Check => "CHEC",
        OpCode::Multi => "MULT",
        OpCode::MultiRead => "MLTR",
        OpCode::Reconfig => "RECO",
        OpCode::CheckWatches => "CHKW",
        OpCode::RemoveWatches => "REMW",
        OpCode::SetWatches => "SETW",
        OpCode::SetWatches2 => "STW2",
        OpCode::AddWatch => "ADDW",
        OpCode::GetEphemerals => "GETE",
        OpCode::GetAllChildrenNumber => "GETACN",
        OpCode::WhoAmI => "HOMI",
        OpCode::CloseSession => "CLOS",
        _ => "NA",
    }
}
