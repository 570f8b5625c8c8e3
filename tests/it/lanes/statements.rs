//! SQL while operations hang and statements take long.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::LONG;
use super::troubled::{Troubled, alone};
use crate::support::fixture::write;
use crate::support::host_process::wait_until;

/// Statements that run at a time.
fn places() -> usize {
    thread::available_parallelism().map_or(2, usize::from) * 4
}

#[test]
fn statements_over_an_operation_that_hangs_end_and_take_no_place_from_others() {
    let troubled = Troubled::with(|options| options.arg("--timeout-ms").arg("4000"));
    let file = troubled.app_dir.path().join("go on");
    let hang = "SELECT * FROM {{stalls?until=$file}}";
    let hanging = places() + 4;
    thread::scope(|scope| {
        let ask = || {
            let began = Instant::now();
            let answer = troubled.statement("inside", hang, &json!({"file": file}));
            (answer, began.elapsed())
        };
        let hung: Vec<_> = (0..hanging).map(|_| scope.spawn(ask)).collect();
        wait_until(LONG, "all of them", || {
            // Others answer while every place could be held by one that hangs.
            let (status, reply) =
                troubled.statement("inside", "SELECT * FROM {{stalls}}", &json!({}));
            assert_eq!((status, &reply["data"]), (200, &json!([{"until": ""}])), "{reply}");
            hung.iter().all(thread::ScopedJoinHandle::is_finished).then_some(())
        })
        .expect("they end");
        for hung in hung {
            let ((status, reply), took) = hung.join().unwrap();
            let error = reply["error"].as_str().unwrap_or_default();
            assert!(status == 504 && error.contains("did not finish within 4000 ms"), "{reply}");
            assert!(took < Duration::from_secs(40), "{took:?}");
        }
    });
    assert_eq!(troubled.listed("inside", "stalls")["stuck"], hanging);
    write(&file, b"");
    wait_until(LONG, "the return", || {
        (troubled.listed("inside", "stalls")["stuck"] == 0).then_some(())
    })
    .expect("all have returned");
    let (status, reply) = troubled.statement("inside", hang, &json!({"file": file}));
    assert_eq!((status, reply["data"].as_array().map(Vec::len)), (200, Some(1)), "{reply}");
}

#[test]
fn a_statement_that_finds_no_place_is_told_so() {
    let _alone = alone();
    let limits = ["--timeout-ms", "1000", "--sql-timeout", "4"];
    let troubled = Troubled::with(|options| limits.iter().fold(options, |it, word| it.arg(word)));
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let answers: Vec<(u16, Value)> = thread::scope(|scope| {
        let ask = || troubled.statement("inside", endless, &json!({}));
        let asked: Vec<_> = (0..places() * 2).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let of = |wanted: u16| answers.iter().filter(|(status, _)| *status == wanted).count();
    assert!(of(504) >= places() && of(503) > 0, "{answers:?}");
    assert_eq!(of(504) + of(503), answers.len(), "{answers:?}");
    let (_, refused) = answers.iter().find(|(status, _)| *status == 503).unwrap();
    let words = refused["error"].as_str().unwrap();
    assert!(words.contains("statements are running already") && words.contains("1 s"), "{words}");
    let (status, reply) = troubled.statement("inside", "SELECT 1 AS one", &json!({}));
    assert_eq!((status, &reply["data"]), (200, &json!([{"one": 1}])), "{reply}");
}
