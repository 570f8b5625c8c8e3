//! [`Desk`]: all sources together, as one inbox.

use super::door;
use super::form::Given;
use super::row::Row;
use super::source::{Item, Open, Outcome, Source};
use crate::error::HostError;

/// All sources together.
pub(super) struct Desk {
    sources: Vec<(&'static str, Box<dyn Source>)>,
}

impl Desk {
    /// Of these sources, each with the words that name what it brings.
    pub(super) fn new(sources: Vec<(&'static str, Box<dyn Source>)>) -> Self {
        Self { sources }
    }

    /// All that is open, in the order of the list. A source that fails leaves a note; the others are shown.
    ///
    /// # Errors
    /// When no source works, what the first one says.
    pub(super) fn open(&self, project: &str) -> Result<Open, HostError> {
        let (mut all, mut first, mut works) = (Open::default(), None, false);
        for (name, source) in &self.sources {
            match source.open(project) {
                Ok(open) => {
                    works = true;
                    all.rows.extend(open.rows);
                    all.notes.extend(open.notes);
                    all.unread |= open.unread;
                }
                Err(error) => {
                    // A project that is not served here has nothing to read.
                    all.unread |= !door::is_absent(&error);
                    all.notes.push(format!("{name} cannot be shown: {error}"));
                    first.get_or_insert(error);
                }
            }
        }
        all.rows.sort_by(Row::order);
        match first {
            Some(error) if !works => Err(error),
            _ => Ok(all),
        }
    }

    /// The thing with this id, of whichever source has it.
    ///
    /// # Errors
    /// As the sources say, if none has it.
    pub(super) fn item(&self, id: &str) -> Result<Option<Item>, HostError> {
        self.first(|source| source.item(id))
    }

    /// Answers it.
    ///
    /// # Errors
    /// As [`Desk::item`].
    pub(super) fn answer(
        &self,
        id: &str,
        given: &Given<'_>,
        by: &str,
    ) -> Result<Option<Outcome>, HostError> {
        self.first(|source| source.answer(id, given, by))
    }

    /// Takes it off the list.
    ///
    /// # Errors
    /// As [`Desk::item`].
    pub(super) fn dismiss(&self, id: &str) -> Result<Option<Outcome>, HostError> {
        self.first(|source| source.dismiss(id))
    }

    /// The notes of the list, if something could not be read that may hold what no source has found.
    ///
    /// # Errors
    /// As [`Desk::open`].
    pub(super) fn unread(&self) -> Result<Vec<String>, HostError> {
        let open = self.open("")?;
        Ok(if open.unread { open.notes } else { Vec::new() })
    }

    fn first<T>(
        &self,
        mut ask: impl FnMut(&dyn Source) -> Result<Option<T>, HostError>,
    ) -> Result<Option<T>, HostError> {
        let mut failed = None;
        for (_, source) in &self.sources {
            match ask(&**source) {
                Ok(None) => {}
                // A project that is not served here has no such id.
                Err(error) if door::is_absent(&error) => {}
                Err(error) => {
                    failed.get_or_insert(error);
                }
                found => return found,
            }
        }
        failed.map_or(Ok(None), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::super::row::{Kind, tests::row};
    use super::*;

    /// Rows, or a failure.
    struct Fixed(Result<Vec<Row>, HostError>);

    impl Source for Fixed {
        fn open(&self, _: &str) -> Result<Open, HostError> {
            self.0.clone().map(|rows| Open { rows, ..Open::default() })
        }

        fn item(&self, _: &str) -> Result<Option<Item>, HostError> {
            self.0.clone().map(|_| None)
        }

        fn answer(&self, id: &str, _: &Given<'_>, _: &str) -> Result<Option<Outcome>, HostError> {
            let mine = |rows: Vec<Row>| {
                rows.iter().any(|row| row.id == id).then(|| Outcome::Misfit("mine".to_owned()))
            };
            self.0.clone().map(mine)
        }

        fn dismiss(&self, _: &str) -> Result<Option<Outcome>, HostError> {
            self.0.clone().map(|_| None)
        }
    }

    fn desk(sources: [Result<Vec<Row>, HostError>; 2]) -> Desk {
        let [cards, runs] = sources.map(|source| Box::new(Fixed(source)) as Box<dyn Source>);
        Desk::new(vec![("cards", cards), ("requests", runs)])
    }

    fn broken() -> HostError {
        HostError::Raised { message: "torn".to_owned() }
    }

    fn absent() -> HostError {
        HostError::UnknownOp {
            workspace: "_core".into(),
            project: "p".into(),
            op: "o".into(),
            known: Vec::new(),
        }
    }

    #[test]
    fn sources_mix_in_one_order() {
        let cards = vec![
            row(Kind::Message, "m", "2026-03-01T00:00:00.000Z"),
            row(Kind::Question, "q2", "2026-03-03T00:00:00.000Z"),
        ];
        let runs = vec![row(Kind::Question, "q1", "2026-03-02T00:00:00Z")];
        let open = desk([Ok(cards), Ok(runs)]).open("").unwrap();
        let ids: Vec<&str> = open.rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["q1", "q2", "m"]);
    }

    #[test]
    fn a_broken_source_hides_nothing_of_the_others() {
        let rows = vec![row(Kind::Question, "q", "")];
        let open = desk([Err(broken()), Ok(rows.clone())]).open("").unwrap();
        assert_eq!(
            (open.rows.len(), open.notes, open.unread),
            (1, vec!["cards cannot be shown: torn".to_owned()], true)
        );
        let absent_only = desk([Err(absent()), Ok(vec![])]).open("").unwrap();
        assert_eq!((absent_only.notes.len(), absent_only.unread), (1, false));
        assert!(desk([Err(broken()), Err(absent())]).open("").is_err());
        let answered = desk([Err(broken()), Ok(rows)]).answer("q", &Given::default(), "ann");
        assert_eq!(answered.unwrap(), Some(Outcome::Misfit("mine".to_owned())));
    }

    #[test]
    fn an_id_that_nobody_has_is_none_unless_somebody_could_not_look() {
        assert!(desk([Ok(vec![]), Err(absent())]).item("x").unwrap().is_none());
        assert!(desk([Ok(vec![]), Err(broken())]).item("x").is_err());
    }
}
