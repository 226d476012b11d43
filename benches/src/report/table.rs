//! Figures in rows and columns.

/// A table: the first columns name the row, the others are its figures.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The names of the columns. Those of figures have the unit.
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// The content of one row and column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Text(String),
    Count(u64),
    /// A measured figure. Markdown shows three significant digits, CSV shows all.
    Figure(f64),
    Nothing,
}

/// The name of a column, and its cell in a row.
pub(super) type Column<'c, R> = (&'c str, &'c dyn Fn(&R) -> Cell);

impl Cell {
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

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::Count(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Cell {
        Cell::Count(count as u64)
    }
}

impl From<f64> for Cell {
    fn from(figure: f64) -> Cell {
        Cell::Figure(figure)
    }
}

impl From<Option<f64>> for Cell {
    fn from(figure: Option<f64>) -> Cell {
        figure.map_or(Cell::Nothing, Cell::Figure)
    }
}

impl Table {
    pub fn of<R>(rows: impl IntoIterator<Item = R>, columns: &[Column<'_, R>]) -> Table {
        let row = |row: R| columns.iter().map(|(_, cell)| cell(&row)).collect();
        Table {
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: rows.into_iter().map(row).collect(),
        }
    }

    /// A table of rows that are made already.
    ///
    /// # Panics
    ///
    /// If a row has more or fewer cells than there are columns.
    pub fn new(columns: Vec<String>, rows: Vec<Vec<Cell>>) -> Table {
        let complete = rows.iter().all(|row| row.len() == columns.len());
        assert!(complete, "a cell for each column");
        Table { columns, rows }
    }

    /// The table in Markdown. Words are aligned to the left, figures to the right.
    pub fn to_markdown(&self) -> String {
        let mut lines = vec![self.columns.clone()];
        for row in &self.rows {
            lines.push(row.iter().map(Cell::to_markdown).collect());
        }
        let is_text = |place: usize| {
            let mut cells = self.rows.iter().map(|row| &row[place]);
            cells.any(|cell| matches!(cell, Cell::Text(_)))
        };
        let width = |place: usize| {
            let cells = lines.iter().map(|line| line[place].chars().count());
            cells.max().unwrap_or(0).max(3)
        };
        let aligned = |line: Vec<String>| {
            let cells = line.into_iter().enumerate().map(|(place, cell)| {
                let width = width(place);
                match is_text(place) {
                    true => format!("| {cell:<width$} "),
                    false => format!("| {cell:>width$} "),
                }
            });
            cells.collect::<String>() + "|\n"
        };
        let rule = (0..self.columns.len()).map(|place| match is_text(place) {
            true => "-".repeat(width(place)),
            false => "-".repeat(width(place) - 1) + ":",
        });
        let rule = rule.collect();
        let mut lines = lines.clone().into_iter();
        let heads = lines.next().into_iter().chain([rule]);
        heads.chain(lines).map(aligned).collect()
    }

    pub(super) fn to_csv(&self) -> String {
        let heads = self.columns.iter().map(|name| Cell::from(&**name));
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
