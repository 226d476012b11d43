//! Ratios as bars that grow from one, to the right or to the left, on a logarithmic axis, as SVG.

use anyhow::Context;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::plot::{colour, label};

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;

type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

const WIDTH: u32 = 960;

/// The height of the head above the bars: the title and the names of the series.
const HEAD: i32 = 84;

/// The height of the foot below the bars: the axis.
const FOOT: i32 = 56;

/// The width of the names of the groups, left of the bars.
const NAMES: i32 = 330;

/// The width of the longest bar's figure, right of the bars.
const FIGURES: i32 = 60;

const BAR: i32 = 14;

const BETWEEN_GROUPS: i32 = 12;

/// A picture of ratios in groups.
#[derive(Clone, Debug)]
pub struct Bars {
    /// The title, above the picture.
    pub title: String,
    /// The meaning of a ratio, below the axis.
    pub axis: String,
    /// The names of the bars, alike in all groups.
    pub series: Vec<String>,
    /// The groups, from top to bottom.
    pub groups: Vec<Group>,
}

/// Bars that belong together.
#[derive(Clone, Debug)]
pub struct Group {
    /// The name, to the left of the bars.
    pub name: String,
    /// A ratio for each of the series; `None` for a missing bar.
    pub ratios: Vec<Option<f64>>,
}

impl Bars {
    pub(super) fn to_svg(&self) -> anyhow::Result<String> {
        let mut svg = String::new();
        let bars: usize = self.groups.iter().map(|group| group.bars().count()).sum();
        // A picture with more bars than that would not be read.
        let bars = i32::try_from(bars).context("too many bars")?;
        let groups = i32::try_from(self.groups.len()).context("too many groups")?;
        let height = HEAD + FOOT + bars * BAR + groups * BETWEEN_GROUPS;
        let area = SVGBackend::with_string(&mut svg, (WIDTH, height.unsigned_abs()));
        let area = area.into_drawing_area();
        // The error of the drawing itself does not outlive what it draws on.
        self.draw(&area, height)
            .map_err(|error| anyhow::anyhow!("{error}"))
            .and_then(|()| area.present().context("not to be written"))
            .with_context(|| format!("cannot draw {:?}", self.title))?;
        drop(area);
        Ok(svg)
    }

    fn draw(&self, area: &Area<'_>, height: i32) -> Drawn {
        area.fill(&WHITE)?;
        let middle = WIDTH as i32 / 2;
        text(area, &self.title, (middle, 22), 22, HPos::Center)?;
        self.draw_names(area)?;
        let ratios = self.groups.iter().flat_map(|group| &group.ratios);
        let ratios: Vec<f64> = ratios.flatten().copied().collect();
        let axis = Axis::over(&ratios);
        axis.draw(area, height - FOOT)?;
        let under_the_bars = ((NAMES + WIDTH as i32 - FIGURES) / 2, height - 16);
        text(area, &self.axis, under_the_bars, 17, HPos::Center)?;
        let mut top = HEAD + BETWEEN_GROUPS / 2;
        for group in &self.groups {
            top = group.draw(area, &axis, top)? + BETWEEN_GROUPS;
        }
        Ok(())
    }

    /// The name of each series, beside its colour.
    fn draw_names(&self, area: &Area<'_>) -> Drawn {
        for (place, name) in self.series.iter().enumerate() {
            let left = NAMES + 150 * place as i32;
            let mark = Rectangle::new([(left, 50), (left + 14, 64)], colour(place).filled());
            area.draw(&mark)?;
            text(area, name, (left + 20, 57), 16, HPos::Left)?;
        }
        Ok(())
    }
}

impl Group {
    /// The bars that are not missing, each with its place among the series.
    fn bars(&self) -> impl Iterator<Item = (usize, f64)> {
        let ratios = self.ratios.iter().enumerate();
        ratios.filter_map(|(place, ratio)| Some((place, (*ratio)?)))
    }

    /// Draws the bars below `top`, and says where they end.
    fn draw(&self, area: &Area<'_>, axis: &Axis, mut top: i32) -> Drawn<i32> {
        let one = axis.place(1.0);
        let name_at = (NAMES - 14, top + self.bars().count() as i32 * BAR / 2);
        text(area, &self.name, name_at, 16, HPos::Right)?;
        for (place, ratio) in self.bars() {
            let end = axis.place(ratio);
            let corners = [(one.min(end), top + 1), (one.max(end), top + BAR - 1)];
            area.draw(&Rectangle::new(corners, colour(place).filled()))?;
            let figure = match ratio {
                _ if ratio < 9.995 => format!("{ratio:.2}"),
                _ => format!("{ratio:.*}", usize::from(ratio < 99.95)),
            };
            let at = (one.max(end) + 6, top + BAR / 2);
            text(area, &figure, at, 13, HPos::Left)?;
            top += BAR;
        }
        Ok(top)
    }
}

/// The decades of the axis. The ratio 1 is among them.
struct Axis {
    first: i32,
    last: i32,
}

impl Axis {
    fn over(ratios: &[f64]) -> Axis {
        let ratios = || ratios.iter().copied().filter(|ratio| *ratio > 0.0);
        // Whole numbers, and small.
        Axis {
            first: ratios().fold(1.0, f64::min).log10().floor() as i32,
            last: ratios().fold(10.0, f64::max).log10().ceil() as i32,
        }
    }

    fn place(&self, ratio: f64) -> i32 {
        let from = f64::from(NAMES);
        let to = f64::from(WIDTH as i32 - FIGURES);
        let decades = f64::from(self.last - self.first);
        let part = (ratio.log10() - f64::from(self.first)) / decades;
        (from + part.max(0.0) * (to - from)).round() as i32
    }

    /// Draws a line for each decade, down to `bottom`, with its label.
    fn draw(&self, area: &Area<'_>, bottom: i32) -> Drawn {
        for decade in self.first..=self.last {
            let at = self.place(10_f64.powi(decade));
            let style = match decade {
                0 => BLACK.stroke_width(2),
                _ => BLACK.mix(0.2).stroke_width(1),
            };
            area.draw(&PathElement::new([(at, HEAD), (at, bottom)], style))?;
            let label = label(f64::from(decade));
            text(area, &label, (at, bottom + 14), 15, HPos::Center)?;
        }
        Ok(())
    }
}

fn text(area: &Area<'_>, words: &str, at: (i32, i32), size: i32, side: HPos) -> Drawn {
    let style = TextStyle::from(("sans-serif", size).into_font()).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(words.to_owned(), at, style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_has_one_and_each_ratio_on_it() {
        let axis = Axis::over(&[0.9, 250.0]);
        assert_eq!((axis.first, axis.last), (-1, 3));
        assert!(axis.place(0.9) < axis.place(1.0));
        assert!(axis.place(250.0) < WIDTH as i32 - FIGURES);
        let axis = Axis::over(&[1.5, 2.0]);
        assert_eq!((axis.first, axis.last), (0, 1));
    }

    #[test]
    fn picture_has_a_bar_for_each_ratio_that_is_there() -> anyhow::Result<()> {
        let bars = Bars {
            title: "ratios".to_owned(),
            axis: "times".to_owned(),
            series: vec!["one".to_owned(), "other".to_owned()],
            groups: vec![Group {
                name: "lock".to_owned(),
                ratios: vec![Some(2.5), None],
            }],
        };
        let svg = bars.to_svg()?;
        assert!(svg.contains("2.50"), "{svg}");
        // The background, two marks, and one bar.
        assert_eq!(svg.matches("<rect").count(), 4, "{svg}");
        Ok(())
    }
}
