//! Faults that belong together: what one leaves open, the next one hits.
//!
//! Chance alone brings them too seldom. Each pair has its moments drawn as parts of the session
//! timeout and of the tick.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::{sleep, sleep_until};
use zookeeper_recipes_simulation::{
    Fault, FaultKind, RequestKind, ServerSettings, SimulatedProcess, Simulation, SimulationOptions,
};

use crate::interference::{self, weighted};
use crate::lasting_faults::draw_way;
use crate::schedule::{longest_tick_of_pairs, pairs_mend_within};
use crate::setting::Setting;

/// Has pairs happen, one after the other, until the quiet begins.
pub(crate) async fn run(setting: &Setting, mut rng: Rng) {
    let Some(pause) = setting.schedule.between_pairs else {
        return;
    };
    let pairs = async {
        loop {
            sleep(rng.u32(1..=8) * pause / 8).await;
            let process = befallen(setting, &mut rng);
            let pair = Pair {
                simulation: &setting.simulation,
                setting,
                options: &setting.schedule.options,
                process: setting.simulation.process(&process),
                rng: &mut rng,
            };
            pair.happen().await;
        }
    };
    tokio::select! {
        biased;
        () = sleep_until(setting.quiet_from) => {}
        () = pairs => {}
    }
}

/// The name of a process, more often than not one that holds, if one does by way of a follower.
fn befallen(setting: &Setting, rng: &mut Rng) -> String {
    let administrator = setting.simulation.administrator();
    let leader = Some(administrator.leader());
    let mut holders = setting.ledger.holders();
    let by_follower = |session| administrator.server_of(session) != leader;
    if holders.iter().any(|(_, session)| by_follower(*session)) && rng.bool() {
        holders.retain(|(_, session)| by_follower(*session));
    }
    let holder = rng
        .choice(&holders)
        .and_then(|(who, _)| who.split_once('.'));
    match holder {
        Some((process, _)) if rng.u8(..4) > 0 => process.to_owned(),
        _ => format!("p{}", rng.usize(..setting.schedule.processes)),
    }
}

struct Pair<'a> {
    simulation: &'a Simulation,
    setting: &'a Setting,
    options: &'a SimulationOptions,
    process: SimulatedProcess,
    rng: &'a mut Rng,
}

impl Pair<'_> {
    async fn happen(mut self) {
        let kinds: [(&str, u32); 14] = [
            ("paused, then its server is cut off", 6),
            ("its server is cut off, then paused", 2),
            ("paused twice", 1),
            ("expired, then back at a server that lags behind", 1),
            ("asleep while the leader is alone", 2),
            ("its connection breaks twice", 1),
            ("a create unanswered, then asleep", 1),
            ("blocked, then unheard", 1),
            ("commits stall, then the leader falls", 1),
            ("its server pauses, then is cut off", 2),
            ("an answer late, then its server is cut off", 1),
            ("forgotten, then asleep", 1),
            ("cut off, then forgotten", 1),
            ("another tick", 1),
        ];
        let kind = weighted(&kinds.map(|(_, weight)| weight), self.rng);
        let (name, text) = (self.process.name(), kinds[kind].0);
        self.setting.ledger.remark(format!("a pair: {name} {text}"));
        match kind {
            0 => self.paused_then_cut_off().await,
            1 => self.cut_off_then_paused(),
            2 => self.paused_twice().await,
            3 => self.expired_then_behind().await,
            4 => self.asleep_beside_a_lonely_leader().await,
            5 => self.broken_twice(),
            6 => self.created_then_asleep(),
            7 => self.blocked_then_unheard().await,
            8 => self.stalled_then_elected().await,
            9 => self.server_paused_then_cut_off().await,
            10 => self.answered_late_then_cut_off(),
            11 => self.forgotten_then_asleep().await,
            12 => self.cut_off_then_forgotten().await,
            _ => self.restarted(),
        }
    }

    /// Between so many hundredths of the session timeout.
    fn part(&mut self, from: u32, to: u32) -> Duration {
        self.options.session_timeout * self.rng.u32(from..=to) / 100
    }

    /// Up to half a tick, now and then nothing.
    fn moment(&mut self) -> Duration {
        self.options.tick * self.rng.u32(..=50).saturating_sub(5) / 100
    }

    /// A fault of the process.
    fn inject(&self, fault: Fault) {
        let fault = fault.of_process(self.process.name());
        self.simulation.faults().inject(fault);
    }

    /// The next probe of the process, or the next but one.
    fn on_a_probe(&mut self, kind: FaultKind, nth: u64) {
        self.inject(Fault::new(kind).on(RequestKind::Sync).nth(nth));
    }

    fn server(&mut self) -> usize {
        self.rng.usize(..self.options.servers)
    }

    /// A session that contends just now.
    fn session(&mut self) -> Option<zookeeper_recipes_core::SessionId> {
        let contenders = self.setting.ledger.contenders();
        self.rng.choice(&contenders).and_then(|(_, owner)| *owner)
    }

    /// A leader to which the one answer after the pause was not reported expires the session before
    /// the lease that is counted from it has run out.
    async fn paused_then_cut_off(&mut self) {
        let timeout = self.options.session_timeout;
        self.setting.ledger.detain(timeout * 2);
        // After two fifths a client that has nothing to hear gives the connection up.
        let asleep = match self.rng.u8(..4) {
            0 => self.part(15, 75),
            1 => self.part(30, 39),
            _ => self.part(38, 66),
        };
        if asleep > timeout * 2 / 5 {
            self.inject(Fault::new(FaultKind::Asleep(asleep)).on(RequestKind::Transact));
            let until = self.setting.ledger.now() + timeout / 2;
            while !self.process.is_asleep() && self.setting.ledger.now() < until {
                sleep(Duration::from_millis(10)).await;
            }
        } else {
            self.process.sleep(asleep);
        }
        // Nothing is sent before it wakes, and a probe first thing then.
        let (nth, cut) = (1 + u64::from(self.rng.u8(..5) == 0), self.part(50, 300));
        self.on_a_probe(FaultKind::CutOff(cut), nth);
        sleep(asleep + timeout * self.rng.u32(1..=8) / 4).await;
    }

    fn cut_off_then_paused(&mut self) {
        let (nth, cut, asleep) = (self.rng.u64(1..=2), self.part(50, 300), self.part(15, 120));
        self.on_a_probe(FaultKind::CutOff(cut), nth);
        let after = self.rng.u64(0..=1);
        self.on_a_probe(FaultKind::Asleep(asleep), nth + after);
    }

    async fn paused_twice(&mut self) {
        for _ in 0..2 {
            let asleep = self.part(20, 70);
            self.process.sleep(asleep);
            let awake = self.part(1, 40);
            sleep(asleep + awake).await;
        }
    }

    async fn expired_then_behind(&mut self) {
        let (server, cut) = (self.server(), self.part(5, 60));
        let way = draw_way(self.rng);
        self.simulation.faults().cut_off_one_way(server, way, cut);
        sleep(self.moment()).await;
        if let Some(session) = self.session() {
            interference::end(self.setting, session);
            self.simulation.faults().disconnect(session);
        }
    }

    async fn asleep_beside_a_lonely_leader(&mut self) {
        let alone = self.options.tick * (self.options.sync_limit + self.rng.u32(..=4));
        let alone = alone.min(pairs_mend_within(self.options));
        let asleep = self.part(20, 150);
        if self.rng.bool() {
            self.setting
                .ledger
                .detain(alone + self.options.session_timeout);
            let leader = self.simulation.administrator().leader();
            let fault = Fault::new(FaultKind::RequestLost).on(RequestKind::Sync);
            self.inject(fault.reconnecting_to(leader));
            sleep(self.part(15, 40)).await;
            return self.simulation.faults().isolate_leader(alone);
        }
        let sleeps_first = self.rng.bool();
        if sleeps_first {
            self.process.sleep(asleep);
            sleep(self.moment()).await;
        }
        self.simulation.faults().isolate_leader(alone);
        if !sleeps_first {
            sleep(alone * self.rng.u32(..=100) / 100).await;
            self.process.sleep(asleep);
        }
    }

    fn broken_twice(&mut self) {
        let kinds = [FaultKind::RequestLost, FaultKind::ReplyLost];
        for nth in 1..=2 {
            let fault = Fault::new(kinds[self.rng.usize(..2)]).nth(nth);
            let server = self.server();
            self.inject(fault.reconnecting_to(server));
        }
        if self.rng.bool() {
            let fault = Fault::new(kinds[self.rng.usize(..2)]);
            self.inject(fault.on(RequestKind::SetWatches));
        }
    }

    fn created_then_asleep(&mut self) {
        let asleep = self.part(20, 150);
        for kind in [FaultKind::ReplyLost, FaultKind::Asleep(asleep)] {
            self.inject(Fault::new(kind).on(RequestKind::Create));
        }
    }

    async fn blocked_then_unheard(&mut self) {
        let (blocked, cut) = (self.part(20, 150), self.part(10, 150));
        self.process.block_sessions(blocked);
        sleep(blocked * self.rng.u32(..=100) / 100).await;
        self.process.partition_one_way(draw_way(self.rng), cut);
    }

    async fn stalled_then_elected(&mut self) {
        let stalled = self.part(5, 100);
        self.simulation.faults().stall_commits(stalled);
        sleep(stalled * self.rng.u32(..=100) / 100).await;
        if self.options.servers > 1 {
            let (server, within) = (self.server(), self.moment());
            self.simulation.faults().elect(server, within);
        }
    }

    async fn server_paused_then_cut_off(&mut self) {
        let (server, paused, cut) = (self.server(), self.part(10, 100), self.part(50, 300));
        self.simulation.faults().pause_server(server, paused);
        let nth = self.rng.u64(1..=3);
        self.on_a_probe(FaultKind::CutOff(cut), nth);
        if self.rng.bool() {
            sleep(paused).await;
            sleep(self.moment()).await;
            self.simulation.faults().cut_off_from_leader(server, cut);
        }
    }

    fn answered_late_then_cut_off(&mut self) {
        let (late, cut) = (self.part(5, 39), self.part(50, 300));
        let after = self.rng.u64(0..=1);
        self.on_a_probe(FaultKind::ReplyLate(late), 1);
        self.on_a_probe(FaultKind::CutOff(cut), 1 + after);
    }

    async fn forgotten_then_asleep(&mut self) {
        let asleep = self.part(10, 150);
        if let Some(session) = self.session().filter(|_| self.setting.schedule.forgets) {
            self.simulation.faults().forget(session);
            self.simulation.faults().disconnect(session);
            sleep(self.moment()).await;
            self.process.sleep(asleep);
        }
    }

    /// All members begin anew with another tick, no longer than the one before.
    fn restarted(&mut self) {
        let shortest = self.options.session_timeout.as_millis() as u64 / 20 + 1;
        let longest = longest_tick_of_pairs(self.options).as_millis() as u64;
        let settings = ServerSettings {
            tick: Duration::from_millis(self.rng.u64(shortest.min(longest)..=longest)),
            min_session_timeout: None,
            max_session_timeout: None,
        };
        let within = self.moment();
        self.simulation.faults().restart(settings, within);
    }

    async fn cut_off_then_forgotten(&mut self) {
        let cut = self.part(40, 160);
        if let Some(session) = self.session().filter(|_| self.setting.schedule.forgets) {
            self.simulation.faults().forget(session);
        }
        self.process.partition(cut);
    }
}
