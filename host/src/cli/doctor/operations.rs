//! Checks of what is to be called: folders, artifacts, specs.

use std::collections::BTreeMap;

use super::Finding;
use crate::Host;
use crate::plugins::EntryState;
use crate::spec::Spec;

/// For each collection that is written, one operation that does.
pub(super) fn writers(host: &Host) -> BTreeMap<String, String> {
    let mut writers = BTreeMap::new();
    for entry in host.catalog.entries() {
        if let EntryState::Ready(loaded) = entry.state() {
            for collection in &loaded.descriptor.writes {
                writers.entry(collection.clone()).or_insert_with(|| entry.address.to_string());
            }
        }
    }
    writers
}

/// Everything that keeps an operation from being called, or from being what its spec says.
pub(super) fn check(host: &Host) -> Vec<Finding> {
    let mut findings: Vec<Finding> = host
        .catalog
        .problems()
        .into_iter()
        .map(|problem| Finding::problem(problem.place.display(), problem.reason, problem.remedy))
        .collect();
    for entry in host.catalog.entries() {
        let place = entry.address.to_string();
        match entry.state() {
            EntryState::Building => findings.push(Finding::problem(
                &place,
                "it did not get ready",
                "run `udf-host build`",
            )),
            EntryState::Refused(refusal) => {
                let remedy = match &refusal.detail {
                    Some(_) => format!("{} (`udf-host describe {place}` shows it)", refusal.remedy),
                    None => refusal.remedy.clone(),
                };
                findings.push(Finding::problem(&place, &refusal.reason, remedy));
            }
            EntryState::Ready(loaded) if entry.spec.is_empty() => {
                let params = loaded.descriptor_json["params"].as_array().map_or(0, Vec::len);
                findings.push(Finding::problem(
                    &place,
                    format!("it has no spec.md, and {params} parameters to describe"),
                    format!("write {}", entry.folder.join("spec.md").display()),
                ));
            }
            EntryState::Ready(loaded) => {
                let remedy =
                    format!("correct {} or the operation", entry.folder.join("spec.md").display());
                let drift = Spec::parse(&entry.spec).drift(&loaded.descriptor_json);
                findings
                    .extend(drift.into_iter().map(|what| Finding::problem(&place, what, &remedy)));
            }
        }
        if let Some(note) = entry.view().lane_note {
            findings.push(Finding::problem(
                &place,
                note,
                "correct the operation: the host's log says how it crashed",
            ));
        }
    }
    findings
}
