//! [`Faults`]: what is wrong, each thing once, with the calls that showed it.

/// How many calls are named for one fault; the others are counted.
const NAMED: usize = 3;

/// Faults in the order in which they showed first.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(String, Vec<String>)>);

impl Faults {
    /// `how` it was called, and `what` is wrong with that.
    pub(super) fn add(&mut self, how: &str, what: impl Into<String>) {
        let what = what.into();
        let at = self.0.iter().position(|(known, _)| *known == what).unwrap_or_else(|| {
            self.0.push((what, Vec::new()));
            self.0.len() - 1
        });
        let calls = &mut self.0[at].1;
        if !calls.iter().any(|known| known == how) {
            calls.push(how.to_owned());
        }
    }

    /// One for each fault: `how, how and 7 more: what`.
    pub(super) fn sentences(self) -> Vec<String> {
        let sentence = |(what, mut calls): (String, Vec<String>)| {
            let more = calls.len().saturating_sub(NAMED);
            calls.truncate(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}: {what}", calls.join(", "))
        };
        self.0.into_iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_said_once_with_the_first_calls() {
        let mut faults = Faults::default();
        for (how, what) in
            [("a", "x"), ("b", "y"), ("a", "x"), ("b", "x"), ("c", "x"), ("d", "x"), ("e", "x")]
        {
            faults.add(how, what);
        }
        assert_eq!(faults.sentences(), ["a, b, c and 2 more: x", "b: y"]);
        assert!(Faults::default().sentences().is_empty());
    }
}
