//! [`Trial`]: the folder in which an operation is called, what its calls showed, and the calls of its spec.md.

use std::fs;
use std::io;
use std::path::Path;

use pattern::Scope;
use serde_json::{Value, json};

use super::examples::{Example, examples, parse};
use super::faults::Faults;
use super::tree::Tree;
use super::{Caller, Finding, HOME, ROOT, Rule, Subject};
use crate::envelope::{self, REPLY_LIMIT, UdfRequest};
use crate::error::HostError;
use crate::plugins::{Address, Descriptor, LaneChoice};
use crate::reply::Reply;

/// Told what is about to be tried.
pub(super) type Step<'a> = dyn FnMut(Rule, &str) + 'a;
/// Gets what was found.
pub(super) type Tell<'a> = dyn FnMut(Finding) + 'a;

/// Calls of one operation, and what they showed.
pub(super) struct Trial<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) caller: &'a dyn Caller,
    pub(super) place: &'a Path,
    /// The folder with nothing in it but where calls work.
    bare: Tree,
    /// What calls did to files that they may not do, and how many were watched.
    wrote: Seen,
    /// What one lane answers otherwise than another, and the calls that were compared.
    pub(super) apart: Seen,
    /// What a second equal call answers otherwise, and the calls that were compared.
    pub(super) unsteady: Seen,
}

/// What is wrong, and how many calls were looked at for it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) faults: Faults,
    pub(super) calls: usize,
}

impl Seen {
    pub(super) fn finding(self, rule: Rule) -> Finding {
        Finding::of(rule, self.faults.sentences(), self.calls)
    }
}

/// What the examples showed.
pub(super) struct Shown {
    examples: Vec<Example>,
    /// Whether all of them answer as written.
    pub(super) sound: bool,
    /// Whether an answer holds what differs from one call to the next, as its placeholders say.
    pub(super) varies: bool,
    /// The parameters of the operation's own example that was called last and answered well.
    pub(super) base: Vec<(String, String)>,
    /// The folder after all of them.
    pub(super) after: Tree,
}

/// One run of all examples.
#[derive(Default)]
struct Played {
    fault: Option<String>,
    calls: usize,
    base: Vec<(String, String)>,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        subject: &'a Subject<'a>,
        caller: &'a dyn Caller,
        place: &'a Path,
    ) -> io::Result<Self> {
        for folder in [ROOT, HOME] {
            fs::create_dir_all(place.join(folder))?;
        }
        let bare = Tree::of_folders([ROOT, HOME]);
        let (wrote, apart, unsteady) = (Seen::default(), Seen::default(), Seen::default());
        Ok(Self { subject, caller, place, bare, wrote, apart, unsteady })
    }

    /// Calls every example, in the lane that survives most.
    pub(super) fn examples(
        &mut self,
        step: &mut Step<'_>,
        tell: &mut Tell<'_>,
    ) -> io::Result<Shown> {
        let (examples, unreadable) = match examples(self.subject.spec) {
            Ok(shown) => (shown, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let played = self.play(self.caller.lanes()[0], &examples, Rule::Examples, step)?;
        let mut faults: Vec<String> = played.fault.into_iter().chain(unreadable).collect();
        let mut own = examples.iter().filter(|example| self.is_own(example)).peekable();
        if faults.is_empty() && own.peek().is_none() {
            faults.push("spec.md has no example of the operation itself".to_owned());
        }
        let varies = own.any(|example| pattern::varies(&example.reply));
        let sound = faults.is_empty();
        tell(Finding::of(Rule::Examples, faults, played.calls));
        let after = Tree::of(self.place)?;
        Ok(Shown { examples, sound, varies, base: played.base, after })
    }

    /// Calls every example again, on new state and in every lane.
    pub(super) fn again(&mut self, shown: &Shown, step: &mut Step<'_>) -> io::Result<()> {
        if !shown.sound {
            return Ok(());
        }
        let lanes = self.caller.lanes().to_vec();
        let played = self.play(lanes[0], &shown.examples, Rule::Deterministic, step)?;
        self.unsteady.calls += played.calls;
        if let Some(fault) = played.fault {
            self.unsteady.faults.add("run once more on new state", fault);
        }
        for lane in &lanes[1..] {
            let played = self.play(*lane, &shown.examples, Rule::Lanes, step)?;
            self.apart.calls += played.calls;
            if let Some(fault) = played.fault {
                self.apart.faults.add(&format!("in the {} lane", lane.name()), fault);
            }
        }
        Ok(())
    }

    /// What all calls together showed.
    pub(super) fn tell_rest(self, shown: &Shown, tell: &mut Tell<'_>) {
        let broken = "its examples do not hold";
        tell(match (shown.sound, self.caller.lanes().len()) {
            (_, 1) => Finding::skipped(Rule::Lanes, self.caller.only_lane()),
            (false, _) => Finding::skipped(Rule::Lanes, broken),
            (true, _) => self.apart.finding(Rule::Lanes),
        });
        tell(match shown.sound {
            true => self.unsteady.finding(Rule::Deterministic),
            false => Finding::skipped(Rule::Deterministic, broken),
        });
        let reads_only = reads_only(self.subject);
        let (applies, other, why) = match reads_only {
            true => (Rule::ReadOnly, Rule::Writes, "it declares no writes"),
            false => (Rule::Writes, Rule::ReadOnly, "it declares writes"),
        };
        tell(self.wrote.finding(applies));
        tell(Finding::skipped(other, why));
    }

    fn is_own(&self, example: &Example) -> bool {
        let own = self.subject.address;
        example.op == *own.op
            && example.project.as_deref().is_none_or(|project| project == &*own.project)
    }

    /// Calls all examples on new state, up to the first that does not answer as written.
    fn play(
        &mut self,
        lane: LaneChoice,
        examples: &[Example],
        rule: Rule,
        step: &mut Step<'_>,
    ) -> io::Result<Played> {
        self.bare.restore(self.place)?;
        let mut scope = Scope::new(self.place.join(ROOT));
        let mut played = Played::default();
        for (at, example) in examples.iter().enumerate() {
            let number = at + 1;
            step(rule, &format!("example {number} in the {} lane", lane.name()));
            played.calls += 1;
            match self.call_example(lane, example, &mut scope)? {
                Ok((params, got)) => {
                    if self.is_own(example) && (got["error"].is_null() || played.base.is_empty()) {
                        played.base = params;
                    }
                    scope.results.insert(number, got["data"].clone());
                }
                Err(why) => {
                    played.fault = Some(format!("example {number} {why}"));
                    break;
                }
            }
        }
        Ok(played)
    }

    /// The texts of an example's parameters and the envelope it is answered with, or what is wrong with it.
    #[expect(clippy::type_complexity, reason = "the two kinds of failure go different ways")]
    fn call_example(
        &mut self,
        lane: LaneChoice,
        example: &Example,
        scope: &mut Scope,
    ) -> io::Result<Result<(Vec<(String, String)>, Value), String>> {
        // As a body, so that values become texts as they do for everybody.
        let request = scope.expand(&example.overrides).and_then(|overrides| {
            let body = json!({"udf": example.op, "overrides": overrides}).to_string();
            UdfRequest::parse(body.as_bytes()).map_err(|error| error.to_string())
        });
        let params = match request {
            Ok(request) => request.overrides,
            Err(why) => return Ok(Err(format!("cannot be called: {why}"))),
        };
        let outcome = if self.is_own(example) {
            self.watched(lane, &params, "an example")?
        } else {
            let own = self.subject.address;
            let project = example.project.as_deref().unwrap_or(&own.project);
            let address = Address::new(&own.workspace, project, &example.op);
            self.caller.call(lane, &address, &params, &self.place.join(ROOT))
        };
        let text = envelope_of(outcome);
        let got = parse(&String::from_utf8_lossy(&text))
            .map_err(|error| format!("answers what is no JSON: {error}"));
        Ok(got.and_then(|got| {
            let compared = scope.compare(&example.reply, &got, "reply");
            compared.map_err(|why| match got["error"].as_str() {
                Some(error) if example.reply["error"].is_null() => format!("fails: {error}"),
                _ => format!("answers otherwise: {why}"),
            })?;
            Ok((params, got))
        }))
    }

    /// Calls the operation and looks at what the call did to files.
    pub(super) fn watched(
        &mut self,
        lane: LaneChoice,
        params: &[(String, String)],
        how: &str,
    ) -> io::Result<Result<Reply, HostError>> {
        let before = Tree::of(self.place)?;
        let root = self.place.join(ROOT);
        let outcome = self.caller.call(lane, self.subject.address, params, &root);
        let after = Tree::of(self.place)?;
        self.wrote.calls += 1;
        let changed = before.changed(&after).into_iter().filter(|path| !self.may_change(path));
        let mut wrote: Vec<String> = changed
            .map(|path| match path.strip_prefix(ROOT) {
                Ok(path) => format!("changed `{}`", path.display()),
                Err(_) => format!("changed `{}` beside the state folder", path.display()),
            })
            .collect();
        if let Err(HostError::Undeclared { message, .. }) = &outcome {
            wrote.push(message.clone());
        }
        if !wrote.is_empty() && reads_only(self.subject) {
            before.restore(self.place)?;
        }
        for what in wrote {
            self.wrote.faults.add(how, what);
        }
        Ok(outcome)
    }

    /// Whether a call may change what lies at this path. Folders that exist for the sake of a file are that file's.
    fn may_change(&self, path: &Path) -> bool {
        let changes_folders = |it: &Descriptor| it.folders && !it.folders_read_only;
        let Ok(path) = path.strip_prefix(ROOT) else {
            // Where an operation keeps folders is said by its parameters.
            return touches(self.subject).any(changes_folders);
        };
        if reads_only(self.subject) {
            return false;
        }
        touches(self.subject).any(|it| {
            let of_collection = |name: &String| {
                path == Path::new("state")
                    || path == Path::new("state").join(format!("{name}.json"))
                    || path == Path::new("state").join(format!(".{name}.lock"))
            };
            let of_log = |name: &String| path.starts_with(name);
            it.writes.iter().any(of_collection)
                || it.logs.iter().any(of_log)
                || (changes_folders(it) && !path.starts_with("state"))
        })
    }
}

/// The operation, and all that it may call.
fn touches<'a>(subject: &'a Subject<'_>) -> impl Iterator<Item = &'a Descriptor> {
    std::iter::once(subject.descriptor).chain(subject.callees.values())
}

pub(super) fn reads_only(subject: &Subject<'_>) -> bool {
    touches(subject).all(|it| !it.changes() && it.logs.is_empty() && !it.net)
}

/// The envelope that a caller gets.
pub(super) fn envelope_of(outcome: Result<Reply, HostError>) -> Vec<u8> {
    outcome
        .and_then(|reply| envelope::render_reply(&reply, REPLY_LIMIT))
        .unwrap_or_else(|error| envelope::render_error(&error.to_string()))
}
