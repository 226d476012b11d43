//! The text of a record, and other texts.

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

#[test]
fn record_is_read_as_it_is_written() -> Result<(), InvalidInput> {
    let slots = Slots::new(HOUR, Duration::from_secs(60))?;
    let owners = ["report@node-7:4711", "of several words", ""];
    for (state, owner) in STATES.into_iter().zip(owners.into_iter().cycle()) {
        let token = FencingToken::from(7);
        let claim = SlotRecord::claimed(3_600_000, 3_600_001, token, owner);
        let ended = (state != SlotState::Started).then(|| time(3_700_000));
        let run = SlotRecord {
            state,
            ended_at: ended,
            ..claim.clone()
        };
        let is_run = state != SlotState::Claimed;
        for record in [
            JobRecord::new(slots, None, None),
            JobRecord::new(slots, None, Some(claim.clone())),
            JobRecord::new(slots, is_run.then(|| run.clone()), None),
            JobRecord::new(slots, is_run.then_some(run), Some(claim)),
        ] {
            let text = record.text();
            assert_eq!(JobRecord::read(text.as_bytes()), Some(record), "{text}");
        }
    }
    assert_eq!(JobRecord::at(&NodePath::new("/job")?, b"")?, None);
    Ok(())
}

#[test]
fn other_data_is_refused_with_its_path() -> Result<(), InvalidInput> {
    let path = NodePath::new("/job")?;
    for data in [
        "5",
        "slots 5",
        "slots 1000 x",
        "slots 1000 0\n1 gone 2 3 - me",
        "slots 1000 0\ngone 1 2 3 - me",
        "slots 1000 0\ndone x 2 3 - me",
        "slots 1000 0\ndone 1 x 3 - me",
        "slots 1000 0\ndone 1 2 3 x me",
        "slots 1000 0\ndone 1 2 3 -",
        "slots 1000 0\ndone 253402300800000 2 3 - me",
        "slots 1000 0\ndone 1 2 253402300800000 - me",
        "slots 1000 0\ndone 1 2 3 18446744073709551615 me",
    ] {
        let refused = JobRecord::at(&path, data.as_bytes()).expect_err("no record");
        assert!(refused.to_string().contains("/job"), "{refused}");
    }
    Ok(())
}
