//! The processor time of a look at the queue: parsing names, ordering contenders, deciding.

mod run;

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use zookeeper_recipes_core::{Contender, Identity, NodePath, QueueView, Rule, order};
use zookeeper_recipes_lock::FirstInQueue;
use zookeeper_recipes_rwlock::NoWriterBefore;
use zookeeper_recipes_semaphore::WithinPermits;

use crate::run::run_benches;

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];

/// Which names stand in the directory.
#[derive(Clone, Copy)]
enum Names {
    Curator,
    /// One in two has a name of another client's, and one in ten is no contender.
    Foreign,
    /// The last ten contenders have come since the create counter ended.
    LastAtTheEnd,
    /// All contenders have come since then.
    AllAtTheEnd,
}

impl Names {
    const ALL: [(&'static str, Names); 4] = [
        ("Curator's", Names::Curator),
        ("with foreign", Names::Foreign),
        ("last at the end of the count", Names::LastAtTheEnd),
        ("all at the end of the count", Names::AllAtTheEnd),
    ];

    /// `number` names, in no order, as a server lists them. The same names in each run.
    fn list(self, number: usize, label: impl Fn(usize) -> String) -> Vec<String> {
        let mut names: Vec<String> = (0..number)
            .map(|place| self.name(place, number, &label(place)))
            .collect();
        // A server lists in the order of a hash. The order of any hash will do.
        names.sort_by_cached_key(|name| hash(name));
        names
    }

    fn name(self, place: usize, number: usize, label: &str) -> String {
        let bits = scattered(place as u128);
        let curator = |sequence: i32| {
            let name = Identity::from_random_bits(bits).name(label);
            format!("{name}{sequence:010}")
        };
        let sequence = i32::try_from(place).expect("few enough");
        match self {
            Names::Curator => curator(sequence),
            Names::Foreign => match place % 10 {
                0 => format!("config-{place}"),
                1 | 3 | 5 => format!("{bits:032x}__lock__{sequence:010}"),
                7 | 9 => format!("_c_{bits:032x}-{label}{sequence:010}"),
                _ => curator(sequence),
            },
            Names::LastAtTheEnd if place + 10 < number => {
                curator(i32::MAX - (number - place) as i32)
            }
            Names::LastAtTheEnd | Names::AllAtTheEnd => curator(i32::MAX),
        }
    }
}

/// Spreads numbers evenly, the same in each run.
fn scattered(number: u128) -> u128 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn hash(name: &str) -> u128 {
    name.bytes()
        .fold(0, |hash, byte| scattered(hash ^ u128::from(byte)))
}

fn parse(names: &[String], rule: &dyn Rule) -> Vec<Contender> {
    names
        .iter()
        .filter_map(|name| Contender::parse(name, |label| rule.counts(label)))
        .collect()
}

fn parsing_and_ordering(criterion: &mut Criterion) {
    let rule = FirstInQueue;
    for (kind, names) in Names::ALL {
        let list = |number| names.list(number, |_| "lock-".to_owned());
        let mut group = criterion.benchmark_group(format!("parse {kind} names"));
        for size in SIZES {
            let names = list(size);
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter(|| parse(black_box(&names), &rule));
            });
        }
        group.finish();
        let mut group = criterion.benchmark_group(format!("order {kind} names"));
        for size in SIZES {
            let contenders = parse(&list(size), &rule);
            group.throughput(Throughput::Elements(size as u64));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                bencher.iter_batched_ref(
                    || contenders.clone(),
                    |contenders| order(contenders),
                    BatchSize::LargeInput,
                );
            });
        }
        group.finish();
    }
}

/// The judgement on the last of the queue, which has the most before it.
fn deciding(criterion: &mut Criterion) {
    let path = NodePath::new("/bench").expect("a good path");
    let half_of = |size: usize| u32::try_from(size / 2).expect("few enough");
    let mut decide =
        |name: &str, rule: &dyn Fn(usize) -> Box<dyn Rule>, label: fn(usize) -> String| {
            let mut group = criterion.benchmark_group(format!("decide {name}"));
            for size in SIZES {
                let rule = rule(size);
                let mut contenders = parse(&Names::Curator.list(size, label), &*rule);
                order(&mut contenders);
                assert_eq!(contenders.len(), size);
                group.throughput(Throughput::Elements(size as u64));
                group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                    let (me, before) = contenders.split_last().expect("there is one");
                    bencher.iter(|| {
                        let view = QueueView::new(black_box(before), me, None);
                        rule.decide(&view)
                    });
                });
            }
            group.finish();
        };
    decide("exclusive", &|_| Box::new(FirstInQueue), |_| {
        "lock-".to_owned()
    });
    decide(
        "read, 90 % readers",
        &|_| Box::new(NoWriterBefore),
        |place| {
            let label = if place % 10 == 0 {
                "__WRIT__"
            } else {
                "__READ__"
            };
            label.to_owned()
        },
    );
    decide("read, readers only", &|_| Box::new(NoWriterBefore), |_| {
        "__READ__".to_owned()
    });
    decide(
        "semaphore, half as many permits",
        &|size| Box::new(WithinPermits::new(&path, half_of(size), 1).expect("permits enough")),
        |_| "permit-1-".to_owned(),
    );
}

fn main() {
    run_benches(&[parsing_and_ordering, deciding]);
}
