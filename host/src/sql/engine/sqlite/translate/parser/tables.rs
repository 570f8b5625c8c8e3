//! Tables, joins, groups.

use super::super::tree::{
    Body, Call, Expr, Factor, From, Group, Join, JoinKind, On, Pivot, Unpivot, What,
};
use super::super::{Result, Untranslated};
use super::Parser;

/// Grouping sets of one statement: each is written down with all that is selected, and those of `ROLLUP` grow by one
/// term each.
const MOST_SETS: usize = 32;

impl Parser<'_> {
    pub(super) fn group(&mut self) -> Result<Group> {
        if self.words("all") {
            return Ok(Group::All);
        }
        if self.words("grouping sets") {
            let sets = self.in_parens(|parser| {
                if !parser.next_is("(") {
                    return Ok(vec![parser.expr()?]);
                }
                if parser.operator_at(1, ")") {
                    parser.at += 2;
                    return Ok(Vec::new());
                }
                parser.in_parens(Self::expr)
            })?;
            return if sets.len() > MOST_SETS { Err(Untranslated) } else { Ok(Group::Sets(sets)) };
        }
        if self.word_at(0, "rollup") && self.operator_at(1, "(") {
            self.at += 1;
            let all = self.in_parens(Self::expr)?;
            if all.len() >= MOST_SETS {
                return Err(Untranslated);
            }
            return Ok(Group::Sets((0..=all.len()).rev().map(|n| all[..n].to_vec()).collect()));
        }
        if self.word_at(0, "cube") && self.operator_at(1, "(") {
            self.at += 1;
            let all = self.in_parens(Self::expr)?;
            if all.len() > 4 {
                return Err(Untranslated);
            }
            let set = |bits: usize| {
                all.iter()
                    .enumerate()
                    .filter(|(at, _)| bits >> at & 1 == 1)
                    .map(|(_, expr)| expr.clone())
                    .collect()
            };
            return Ok(Group::Sets((0..1 << all.len()).rev().map(set).collect()));
        }
        Ok(Group::By(self.list(Self::expr)?))
    }

    pub(super) fn from(&mut self) -> Result<From> {
        let first = self.factor()?;
        let mut joins = Vec::new();
        loop {
            let kind = if self.take(",") || self.words("cross join") {
                JoinKind::Cross
            } else if self.words("join") || self.words("inner join") {
                JoinKind::Inner
            } else if self.words("left join") || self.words("left outer join") {
                JoinKind::Left
            } else if self.words("right join") || self.words("right outer join") {
                JoinKind::Right
            } else if self.words("full join") || self.words("full outer join") {
                JoinKind::Full
            } else if self.words("semi join") {
                JoinKind::Semi
            } else if self.words("anti join") {
                JoinKind::Anti
            } else {
                return Ok(From { first, joins });
            };
            let factor = self.factor()?;
            let on = if kind == JoinKind::Cross {
                On::Nothing
            } else if self.words("on") {
                On::Condition(self.expr()?)
            } else {
                self.expect_words("using")?;
                On::Using(self.in_parens(Self::name)?)
            };
            joins.push(Join { kind, factor, on });
        }
    }

    fn factor(&mut self) -> Result<Factor> {
        let what = if self.take("(") {
            let query = self.query()?;
            self.expect(")")?;
            What::Query(Box::new(query))
        } else {
            let name = self.name()?;
            if self.next_is("(") {
                let args = self.arguments()?;
                What::Function(Call { name, args, ..Call::default() })
            } else {
                What::Table(name)
            }
        };
        let alias = if self.words("as") { Some(self.name()?) } else { self.maybe_name() };
        let columns = if alias.is_some() && self.next_is("(") {
            self.in_parens(Self::name)?
        } else {
            Vec::new()
        };
        Ok(Factor { what, alias, columns })
    }

    fn arguments(&mut self) -> Result<Vec<Expr>> {
        self.expect("(")?;
        if self.take(")") {
            return Ok(Vec::new());
        }
        let all = self.list(Self::expr)?;
        self.expect(")")?;
        Ok(all)
    }

    pub(super) fn pivot(&mut self) -> Result<Body> {
        let source = self.factor()?;
        self.expect_words("on")?;
        let on = self.name()?;
        self.expect_words("in")?;
        let values = self.in_parens(Self::text)?;
        self.expect_words("using")?;
        let Expr::Call(using) = self.expr()? else { return Err(Untranslated) };
        let group = if self.words("group by") { self.list(Self::name)? } else { Vec::new() };
        Ok(Body::Pivot(Box::new(Pivot { source, on, values, using: *using, group })))
    }

    pub(super) fn unpivot(&mut self) -> Result<Body> {
        let source = self.factor()?;
        self.expect_words("on")?;
        let on = self.list(Self::name)?;
        self.expect_words("into name")?;
        let name = self.name()?;
        self.expect_words("value")?;
        let value = self.name()?;
        Ok(Body::Unpivot(Box::new(Unpivot { source, on, name, value })))
    }
}
