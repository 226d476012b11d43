//! Many names in one piece of memory.

/// Names in an order. A list of many children takes two allocations, and not one for each name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    text: String,
    /// Where each name ends.
    ends: Vec<usize>,
}

impl Names {
    /// Copies these names.
    pub(crate) fn of<'a>(names: impl ExactSizeIterator<Item = &'a String> + Clone) -> Names {
        let length = names.clone().map(String::len).sum();
        let mut copied = Names {
            text: String::with_capacity(length),
            ends: Vec::with_capacity(names.len()),
        };
        for name in names {
            copied.text.push_str(name);
            copied.ends.push(copied.text.len());
        }
        copied
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let name = &self.text[start..*end];
            start = *end;
            name
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_come_out_as_they_went_in() {
        let given = ["a", "", "ü", "bc"].map(str::to_owned);
        let names = Names::of(given.iter());
        assert_eq!(names.len(), 4);
        assert!(names.iter().eq(given.iter()));
    }
}
