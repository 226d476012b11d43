//! Processes that sleep, are blocked, killed, or cut off from the servers, and their clients.

use std::time::Duration;

use super::process::ProcessId;
use super::world::{Action, World};
use crate::chance::fault::Way;
use crate::record::trace::TraceKind;

impl World {
    pub(crate) fn fall_asleep(&mut self, process: ProcessId, duration: Duration) {
        let until = self.now() + duration;
        let asleep_until = self.processes[process].asleep_until;
        if asleep_until.is_some_and(|earlier| earlier >= until) {
            return;
        }
        self.trace_process(TraceKind::Fault, process, || {
            format!("asleep for {duration:?}")
        });
        self.servers.meets("asleep", |_, it| it.host == process);
        self.processes[process].asleep_until = Some(until);
        self.schedule(until, Action::Wake(process, until));
    }

    pub(crate) fn wake_now(&mut self, process: ProcessId) {
        let found = &self.processes[process];
        if let Some(until) = found.asleep_until.filter(|_| !found.is_dead()) {
            self.wake(process, until);
        }
    }

    pub(crate) fn kill(&mut self, process: ProcessId) {
        self.trace_process(TraceKind::Fault, process, || "killed".to_owned());
        self.servers.meets("killed", |_, it| it.host == process);
        for connection in self.connections_of(process) {
            self.leave_peer(connection);
        }
        self.processes[process].asleep_until = Some(Duration::MAX);
    }

    pub(crate) fn wake(&mut self, process: ProcessId, at: Duration) {
        if self.processes[process].asleep_until != Some(at) {
            return;
        }
        self.trace_process(TraceKind::Fault, process, || "awake".to_owned());
        self.processes[process].asleep_until = None;
        self.move_on(process);
    }

    /// Blocks the background tasks of a process's sessions, and their clients.
    pub(crate) fn block(&mut self, process: ProcessId, duration: Duration) {
        let until = self.now() + duration;
        let blocked_until = self.processes[process].blocked_until;
        if blocked_until.is_some_and(|earlier| earlier >= until) {
            return;
        }
        self.trace_process(TraceKind::Fault, process, || {
            format!("the runtime of its sessions is blocked for {duration:?}")
        });
        self.servers.meets("blocked", |_, it| it.host == process);
        self.processes[process].blocked_until = Some(until);
        self.schedule(until, Action::Unblock(process, until));
    }

    pub(crate) fn unblock(&mut self, process: ProcessId, at: Duration) {
        if self.processes[process].blocked_until != Some(at) {
            return;
        }
        self.trace_process(TraceKind::Fault, process, || {
            "the runtime of its sessions runs again".to_owned()
        });
        self.processes[process].blocked_until = None;
        self.move_on(process);
    }

    /// Wakes the tasks that paused.
    fn move_on(&mut self, process: ProcessId) {
        let wakers = std::mem::take(&mut self.processes[process].wakers);
        let mut wakers: Vec<_> = wakers.into_values().collect();
        // Nothing promises which of its tasks runs first.
        self.kernel().rng.shuffle(&mut wakers);
        for waker in wakers {
            self.kernel().effect(move || waker.wake());
        }
    }

    /// Makes each message between a process and the servers take longer for a while, both ways.
    pub(crate) fn lengthen_path(&mut self, process: ProcessId, by: Duration, duration: Duration) {
        let until = self.now() + duration;
        self.trace_process(TraceKind::Fault, process, || {
            format!("its messages take {by:?} longer, each way, for {duration:?}")
        });
        self.servers.meets("path long", |_, it| it.host == process);
        self.servers.paths.insert(process, (by, until));
    }

    /// Cuts a process off from the servers for a while, one way or both.
    pub(crate) fn partition(&mut self, process: ProcessId, way: Way, duration: Duration) {
        let until = self.now() + duration;
        self.trace_process(TraceKind::Fault, process, || {
            format!("cut off from all servers, {way:?}, for {duration:?}")
        });
        self.servers.meets("cut off", |_, it| it.host == process);
        self.servers.network.cut_off(process, way, until);
    }
}
