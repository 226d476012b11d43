//! What others do meanwhile: operators with a shell, and contenders of other libraries.

use std::time::Duration;

use fastrand::Rng;
use tokio::time::{sleep, sleep_until, timeout};
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Permission, SessionId};
use zookeeper_recipes_simulation::Administrator;

use crate::place::UNDER_TEST;
use crate::setting::Setting;

/// Children that are no contenders, though some look a little like one.
const OTHER_CHILDREN: [&str; 6] = [
    "0",
    "config",
    "lock-0000000000",
    "_c_not-a-uuid-lock-0000000000",
    "_c_0123456789abcdef0123456789abcdef-lock-00000",
    "permit-0000000000",
];

/// Meddles until the quiet begins.
pub(crate) async fn run(setting: &Setting, mut rng: Rng) {
    let operator = operate(setting, rng.fork());
    let contender = async {
        if setting.schedule.interference.contends {
            contend(setting, rng.fork()).await;
        }
    };
    let both = async {
        tokio::join!(biased; operator, contender);
    };
    tokio::select! {
        biased;
        () = sleep_until(setting.quiet_from) => {}
        () = both => {}
    }
}

/// The index of one of these, drawn by their weights, of which one at least is not zero.
pub(crate) fn weighted(weights: &[u32], rng: &mut Rng) -> usize {
    let total: u32 = weights.iter().sum();
    let mut drawn = rng.u32(..total);
    let found = weights.iter().position(|weight| {
        let found = drawn < *weight;
        drawn = drawn.saturating_sub(*weight);
        found
    });
    found.unwrap_or(0)
}

async fn operate(setting: &Setting, mut rng: Rng) {
    let administrator = setting.simulation.administrator();
    let interference = setting.schedule.interference;
    let kinds = [
        interference.deletes_contenders,
        interference.ends_sessions,
        interference.writes_to_contenders,
        interference.makes_other_children,
        interference.reaps_directories,
        interference.changes_acls,
    ];
    if kinds == [0; 6] {
        return;
    }
    loop {
        sleep(Duration::from_millis(rng.u64(20..=2_000))).await;
        let contenders = setting.ledger.contenders();
        let some = rng.choice(&contenders).cloned();
        match (weighted(&kinds, &mut rng), some) {
            (0, Some((path, _))) => delete(setting, &path),
            (1, Some((_, Some(session)))) => end(setting, session),
            (2, Some((path, _))) => write(&administrator, setting, &path),
            (3, _) => {
                let name = rng.choice(OTHER_CHILDREN).unwrap_or("0");
                create_or_delete(&administrator, name);
            }
            (4, _) => drop(administrator.reap_containers()),
            (5, Some((path, _))) => {
                let longest = setting.longest_stay() / 4;
                let lasts = Duration::from_millis(rng.u64(0..=longest));
                if let Some(withheld) = Withheld::from(setting, path) {
                    sleep(lasts).await;
                    drop(withheld);
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn delete(setting: &Setting, path: &str) {
    setting.ledger.delete_by_hand(path);
    setting.ledger.remark(format!("somebody deletes {path}"));
    // It may be gone by now.
    let _ = setting.simulation.administrator().delete(path);
}

fn write(administrator: &Administrator, setting: &Setting, path: &str) {
    setting.ledger.remark(format!("somebody writes to {path}"));
    // A contender that marks its release lets no other write.
    let _ = administrator.set_data_as_anyone(path, b"somebody was here");
}

/// Creates a child that is no contender, or deletes it if it exists.
fn create_or_delete(administrator: &Administrator, name: &str) {
    let path = format!("{}/{name}", UNDER_TEST.path);
    if administrator
        .create(&path, b"", CreateMode::Persistent)
        .is_err()
    {
        let _ = administrator.delete(&path);
    }
}

/// A znode that everybody may read, and nothing else, until this is dropped.
struct Withheld<'a> {
    setting: &'a Setting,
    administrator: Administrator,
    path: String,
    earlier: Vec<Acl>,
}

impl<'a> Withheld<'a> {
    fn from(setting: &'a Setting, path: String) -> Option<Withheld<'a>> {
        let administrator = setting.simulation.administrator();
        let reads = [Acl::new(Permission::READ, AuthId::anyone())];
        let earlier = administrator.set_acl(&path, &reads).ok()?;
        setting.ledger.withholds();
        setting.ledger.remark(format!(
            "somebody takes away all rights to {path} but to read it"
        ));
        Some(Withheld {
            setting,
            administrator,
            path,
            earlier,
        })
    }
}

impl Drop for Withheld<'_> {
    fn drop(&mut self) {
        let path = &self.path;
        self.setting
            .ledger
            .remark(format!("somebody gives back the rights to {path}"));
        // It may be gone by now.
        let _ = self.administrator.set_acl(path, &self.earlier);
    }
}

pub(crate) fn end(setting: &Setting, session: SessionId) {
    setting.ledgers().for_each(|it| it.end_by_hand(session));
    let remark = format!("somebody ends session {session}");
    setting.simulation.remark(remark);
    setting.simulation.administrator().expire(session);
}

/// Contends as another library would: creates a contender, and some time deletes it.
async fn contend(setting: &Setting, mut rng: Rng) {
    let process = setting.simulation.process("foreign");
    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    loop {
        sleep(Duration::from_millis(rng.u64(100..=3_000))).await;
        let Ok(Ok(session)) = timeout(Duration::from_secs(3), process.connect()).await else {
            continue;
        };
        for _ in 0..rng.u8(1..=3) {
            let Some(name) = setting.recipe.foreign_contender(&mut rng) else {
                return;
            };
            let path = format!("{}/{name}", UNDER_TEST.path);
            let mode = CreateMode::EphemeralSequential;
            let create = session.create(&path, b"", mode, &everyone);
            let Ok(Ok(created)) = timeout(Duration::from_secs(3), create).await else {
                break;
            };
            sleep(Duration::from_millis(rng.u64(0..=2_000))).await;
            if rng.bool() {
                // If no answer comes, the session's end deletes it.
                let _ = timeout(Duration::from_secs(3), session.delete(&created.path)).await;
            }
        }
    }
}
