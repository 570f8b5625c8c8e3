//! Black-box tests: the real binary, real plugins, real sockets. One module per promise.

#[cfg(test)]
mod agent_edges;
#[cfg(test)]
mod agent_hosts;
#[cfg(test)]
mod agent_serve;
#[cfg(test)]
mod artifacts;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod check;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod duckdb;
#[cfg(test)]
mod figures;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod listings;
#[cfg(test)]
mod live;
#[cfg(test)]
mod living_ui;
#[cfg(test)]
mod loading;
#[cfg(test)]
mod locking;
#[cfg(test)]
mod pack;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod recorders;
#[cfg(test)]
mod run_feedback_cli;
#[cfg(test)]
mod run_feedback_crash;
#[cfg(test)]
mod run_feedback_doors;
#[cfg(test)]
mod run_feedback_github;
#[cfg(test)]
mod run_feedback_hostile;
#[cfg(test)]
mod run_feedback_races;
#[cfg(test)]
mod run_feedback_replies;
#[cfg(test)]
mod run_feedback_terminal;
#[cfg(test)]
mod specs;
#[cfg(test)]
mod support;
#[cfg(test)]
mod widgets;
#[cfg(test)]
mod workflow_cases;
#[cfg(test)]
mod workflows;
