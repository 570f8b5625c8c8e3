use proptest::prelude::*;

use super::*;

fn round_trip<'a, T: Wire<'a> + PartialEq + std::fmt::Debug>(value: &T, frame: &'a mut Vec<u8>) {
    *frame = value.encode();
    assert_eq!(&T::decode(frame).unwrap(), value);
}

#[test]
fn numbers_are_little_endian_and_texts_carry_their_length() {
    let request = FindRequest { snapshot: 1, field: "id", value: "é", limit: 0x0102_0304 };
    assert_eq!(
        request.encode(),
        b"\x01\0\0\0\x02\0\0\0id\x02\0\0\0\xc3\xa9\x04\x03\x02\x01",
        "the layout is fixed: plugins of the first interface write it"
    );
}

#[test]
fn fields_of_a_later_interface_are_ignored() {
    let mut out = Writer::default();
    out.put(&ReadRequest { collection: "cards" });
    out.put(&"unknown");
    assert_eq!(ReadRequest::decode(&out.into_bytes()).unwrap().collection, "cards");
}

#[test]
fn forged_counts_and_ends_are_refused() {
    let huge = u32::MAX.to_le_bytes();
    assert!(Vec::<&str>::decode(&huge).is_err());
    assert!(Vec::<()>::decode(&huge).is_err(), "members without bytes must not loop for ever");
    assert!(<&str>::decode(&huge).is_err());
    for ends in [[1_u32, 0], [0, 9], [1, 2]] {
        let mut out = Writer::default();
        out.put(&ends.to_vec());
        out.put(&"\u{e9}x");
        // The last one would cut the two bytes of `é`.
        assert!(Texts::decode(&out.into_bytes()).is_err(), "{ends:?}");
    }
}

proptest! {
    #[test]
    fn messages_survive_the_wire(
        names in proptest::collection::vec((".*", ".*"), 0..6),
        numbers in proptest::collection::vec(any::<u32>(), 0..6),
        flag in any::<bool>(),
        reason in ".*",
    ) {
        let mut frame = Vec::new();
        let params: Vec<(&str, &str)> =
            names.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        round_trip(&CallFrame { params: params.clone() }, &mut frame);
        let mut frame = Vec::new();
        round_trip(&CallRequest { op: &reason, params: params.clone() }, &mut frame);
        let mut frame = Vec::new();
        let texts: Vec<&str> = params.iter().map(|(_, text)| *text).collect();
        let change = Change {
            collection: &reason,
            fresh: flag,
            replaced: numbers.iter().copied().zip(texts.iter().copied()).collect(),
            removed: numbers.clone(),
            pushed: texts.clone(),
        };
        round_trip(&CommitRequest { transaction: 7, changes: vec![change], then_remove: vec![3] }, &mut frame);
        let mut frame = Vec::new();
        let opened = Opened { snapshot: 1, state: 4, len: 9, reason: &reason };
        round_trip(&Begun { transaction: 7, collections: vec![opened; 2] }, &mut frame);
        let mut frame = Vec::new();
        let mut packed = Texts::default();
        for text in &texts {
            packed.push(text).unwrap();
        }
        prop_assert_eq!(packed.iter().collect::<Vec<_>>(), texts);
        round_trip(&Found { positions: numbers, texts: packed }, &mut frame);
        let mut frame = Vec::new();
        round_trip(&flag.then_some(reason.as_str()), &mut frame);
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        // Lengths and flags are small numbers, or nothing behind them is ever looked at.
        frame in proptest::collection::vec(prop_oneof![9 => 0..4_u8, 1 => any::<u8>()], 0..96),
    ) {
        let _ = CallFrame::decode(&frame);
        let _ = CommitRequest::decode(&frame);
        let _ = Found::decode(&frame);
        let _ = Begun::decode(&frame);
        let _ = Option::<u64>::decode(&frame);
    }

    #[test]
    fn a_torn_frame_is_refused(text in ".{1,20}", cut in 1_usize..8) {
        let frame = ReadRequest { collection: &text }.encode();
        prop_assert!(ReadRequest::decode(&frame[..frame.len().saturating_sub(cut)]).is_err());
    }
}
