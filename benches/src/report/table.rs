//! Figures in rows and columns.

use std::fmt::Write as _;

/// A table: the first columns name the row, the others are its figures.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// The head of a column.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    is_text: bool,
}

/// The content of one row and column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A count.
    Count(u64),
    /// A measured figure. Markdown shows three significant digits, CSV shows all.
    Figure(f64),
    /// No figure.
    Nothing,
}

impl Column {
    /// A column of words, aligned to the left.
    pub fn text(name: impl Into<String>) -> Column {
        Column {
            name: name.into(),
            is_text: true,
        }
    }

    /// A column of figures, aligned to the right. The name has the unit.
    pub fn figures(name: impl Into<String>) -> Column {
        Column {
            name: name.into(),
            is_text: false,
        }
    }
}

impl Cell {
    /// The figure if there is one.
    pub fn figure(figure: Option<f64>) -> Cell {
        figure.map_or(Cell::Nothing, Cell::Figure)
    }

    fn to_markdown(&self) -> String {
        match self {
            Cell::Text(text) => text.replace('|', "\\|"),
            Cell::Count(count) => grouped(&count.to_string()),
            Cell::Figure(figure) => shown(*figure),
            Cell::Nothing => "–".to_owned(),
        }
    }

    fn to_csv(&self) -> String {
        match self {
            Cell::Text(text) if text.contains([',', '"', '\n']) => {
                format!("\"{}\"", text.replace('"', "\"\""))
            }
            Cell::Text(text) => text.clone(),
            Cell::Count(count) => count.to_string(),
            Cell::Figure(figure) => figure.to_string(),
            Cell::Nothing => String::new(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// If the row has more or fewer cells than there are columns.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// The table in Markdown, its columns under each other.
    pub fn to_markdown(&self) -> String {
        let heads = self.columns.iter().map(|column| column.name.clone());
        let mut lines: Vec<Vec<String>> = vec![heads.collect()];
        for row in &self.rows {
            lines.push(row.iter().map(Cell::to_markdown).collect());
        }
        let width = |place: usize| {
            let cells = lines.iter().map(|line| line[place].chars().count());
            cells.max().unwrap_or(0).max(3)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let columns = || self.columns.iter().zip(&widths);
        let mut markdown = String::new();
        for (number, line) in lines.iter().enumerate() {
            for (cell, (column, &width)) in line.iter().zip(columns()) {
                // Writing to a String does not fail.
                let _ = match column.is_text {
                    true => write!(markdown, "| {cell:<width$} "),
                    false => write!(markdown, "| {cell:>width$} "),
                };
            }
            markdown.push_str("|\n");
            if number == 0 {
                for (column, &width) in columns() {
                    let _ = match column.is_text {
                        true => write!(markdown, "| {} ", "-".repeat(width)),
                        false => write!(markdown, "| {}: ", "-".repeat(width - 1)),
                    };
                }
                markdown.push_str("|\n");
            }
        }
        markdown
    }

    pub(super) fn to_csv(&self) -> String {
        let heads = self.columns.iter().map(|column| Cell::from(&*column.name));
        let heads: Vec<Cell> = heads.collect();
        let mut csv = String::new();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let cells: Vec<String> = row.iter().map(Cell::to_csv).collect();
            csv.push_str(&cells.join(","));
            csv.push('\n');
        }
        csv
    }
}

/// A figure as Markdown shows it.
pub fn shown(figure: f64) -> String {
    grouped(&three_digits(figure))
}

/// A figure rounded to three digits, or to a whole number if that has more.
fn three_digits(figure: f64) -> String {
    let digits = match figure.abs() {
        0.0 => 0,
        size => 2 - size.log10().floor() as i32,
    };
    let text = format!("{figure:.*}", usize::try_from(digits).unwrap_or(0));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Puts a comma between each three digits before the point.
fn grouped(number: &str) -> String {
    let end = number.find('.').unwrap_or(number.len());
    let mut grouped = String::new();
    for (place, character) in number.char_indices() {
        let after_a_digit = grouped.ends_with(|last: char| last.is_ascii_digit());
        if place < end && after_a_digit && (end - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(character);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new([Column::text("way"), Column::figures("time [ms]")]);
        table.row(["poll, |often|".into(), Cell::Figure(1234.567)]);
        table.row(["parent".into(), Cell::Nothing]);
        table
    }

    #[test]
    fn markdown_has_its_columns_under_each_other() {
        assert_eq!(
            table().to_markdown(),
            "| way             | time [ms] |\n\
             | --------------- | --------: |\n\
             | poll, \\|often\\| |     1,235 |\n\
             | parent          |         – |\n"
        );
    }

    #[test]
    fn csv_has_each_digit_and_quotes_what_has_a_comma() {
        assert_eq!(
            table().to_csv(),
            "way,time [ms]\n\"poll, |often|\",1234.567\nparent,\n"
        );
    }

    #[test]
    fn figures_show_three_digits_that_mean_something() {
        for (figure, shown) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.012_345, "0.0123"),
            (9.996, "10"),
            (12.0, "12"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234_567.8, "1,234,568"),
            (-1234.5, "-1,234"),
        ] {
            assert_eq!(Cell::Figure(figure).to_markdown(), shown, "{figure}");
        }
    }
}
