use super::*;

fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut incoming = Incoming::default();
    let mut found = Vec::new();
    loop {
        while let Some(frame) = incoming.next().unwrap() {
            found.push(frame);
        }
        // A few bytes at a time, as a socket may bring them.
        let (piece, rest) = bytes.split_at(bytes.len().min(7));
        bytes = rest;
        if incoming.fill(piece).unwrap() == 0 {
            return found;
        }
    }
}

#[test]
fn frames_survive_being_cut_anywhere() {
    let run = ToWorker::Run(Run {
        op: "w.p.o",
        artifact: "/a.so",
        app_dir: "/s",
        left_us: 1_000_000,
        reading: true,
        params: vec![("id", "é"), ("", "")],
    });
    let to_worker = [
        ToWorker::Hello { host: 7, memory: 1 << 30, synced: true },
        run,
        ToWorker::Cancel,
        ToWorker::Answer { request: 3, outcome: Err(b"no") },
    ];
    let bytes: Vec<u8> = to_worker.iter().zip(5..).flat_map(|(it, n)| it.encode(n)).collect();
    let found = frames(&bytes);
    assert_eq!(found.iter().map(|frame| frame.call).collect::<Vec<_>>(), [5, 6, 7, 8]);
    for (frame, want) in found.iter().zip(&to_worker) {
        assert_eq!(frame.for_worker().as_ref(), Ok(want));
    }
    let from_worker = [
        FromWorker::Reply { outcome: Ok(b"x"), beyond: true, leftovers: false, worn: true },
        FromWorker::Request { request: 0, method: 50, frame: b"" },
        FromWorker::NoRoom,
    ];
    let bytes: Vec<u8> = from_worker.iter().flat_map(|it| it.encode(1)).collect();
    let found = frames(&bytes);
    for (frame, want) in found.iter().zip(&from_worker) {
        assert_eq!(frame.of_worker().as_ref(), Ok(want));
    }
    assert_eq!(found.len(), from_worker.len());
    assert!(found[0].for_worker().is_err(), "a worker's frame is none of the host's");
}

#[test]
fn noise_is_no_frame() {
    for noise in [[0; 4], [255; 4], [8, 0, 0, 0]] {
        let mut incoming = Incoming::default();
        incoming.fill(&noise[..]).unwrap();
        assert_eq!(incoming.next().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
