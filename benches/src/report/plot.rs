//! Curves on logarithmic axes, as SVG.

use std::ops::Range;

use anyhow::Context;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (960, 540);

/// The width of the names of the curves, right of them.
const LEGEND: i32 = 250;

/// Colours that colour-blind readers can tell apart, by Okabe and Ito.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// A picture with logarithmic axes.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The title, above the picture.
    pub title: String,
    /// The quantity on the horizontal axis, with its unit.
    pub right: String,
    /// The quantity on the vertical axis, with its unit.
    pub up: String,
    /// The curves. Curves of the same place have the same colour and mark in all pictures.
    pub series: Vec<Series>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name, beside the picture.
    pub name: String,
    /// The points. A zero has no place on a logarithmic axis, and is left out. If no other point is
    /// left, the name says so. A curve without any points is not mentioned.
    pub points: Vec<(f64, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The error of the drawing itself does not outlive the drawing area.
fn failed(error: impl std::error::Error) -> String {
    error.to_string()
}

impl Plot {
    pub(super) fn to_svg(&self) -> anyhow::Result<String> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        self.draw(&area)
            .and_then(|()| area.present().map_err(failed))
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot draw {:?}", self.title))?;
        drop(area);
        Ok(svg)
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), String> {
        area.fill(&WHITE).map_err(failed)?;
        let points = || self.series.iter().flat_map(Series::visible);
        let (width, _) = SIZE;
        let legend = width as i32 - LEGEND;
        let (curves, _) = area.split_horizontally(legend);
        let mut chart = ChartBuilder::on(&curves)
            .caption(&self.title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(76)
            .build_cartesian_2d(
                Axis::at(points().map(|(right, _)| right)),
                Axis::in_decades(points().map(|(_, up)| up)),
            )
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_desc(&self.right)
            .y_desc(&self.up)
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 15))
            .bold_line_style(BLACK.mix(0.2))
            .light_line_style(BLACK.mix(0.06))
            .draw()
            .map_err(failed)?;
        let mut top = 70;
        for (place, series) in self.series.iter().enumerate() {
            if series.points.is_empty() {
                continue;
            }
            let at = |(right, up): (f64, f64)| chart.backend_coord(&(right.log10(), up.log10()));
            let points: Vec<(i32, i32)> = series.visible().map(at).collect();
            // Larger than the curves that follow, so that the reader sees where they coincide.
            let size = 5 + 2 * (self.series.len() - 1 - place) as i32;
            if points.len() > 1 {
                draw_line(area, place, points.clone())?;
            }
            for point in points {
                draw_marker(area, place, size, point)?;
            }

            draw_line(area, place, vec![(legend, top), (legend + 34, top)])?;
            draw_marker(area, place, 6, (legend + 17, top))?;
            let name = match series.visible().next() {
                Some(_) => series.name.clone(),
                None => format!("{} (none)", series.name),
            };
            let style = TextStyle::from(("sans-serif", 16).into_font())
                .pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(name, (legend + 42, top), style))
                .map_err(failed)?;
            top += 28;
        }
        Ok(())
    }
}

impl Series {
    fn visible(&self) -> impl Iterator<Item = (f64, f64)> {
        let points = self.points.iter().copied();
        points.filter(|(right, up)| *right > 0.0 && *up > 0.0)
    }
}

/// A logarithmic axis, measured in powers of ten.
struct Axis {
    range: Range<f64>,
    /// The places of a line with a label.
    labelled: Vec<f64>,
    /// The places of a line.
    between: Vec<f64>,
}

impl Axis {
    /// An axis with a line at each value.
    fn at(values: impl Iterator<Item = f64>) -> Axis {
        let mut powers: Vec<f64> = values.map(f64::log10).collect();
        powers.sort_unstable_by(f64::total_cmp);
        powers.dedup();
        let first = powers.first().copied().unwrap_or(0.0);
        let last = powers.last().copied().unwrap_or(1.0);
        Axis {
            range: first - 0.08..last + 0.08,
            labelled: powers,
            between: Vec::new(),
        }
    }

    /// An axis with a line at each power of ten, from below the values to above them.
    fn in_decades(values: impl Iterator<Item = f64>) -> Axis {
        let powers: Vec<f64> = values.map(f64::log10).collect();
        let smallest = powers.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0);
        let largest = powers.iter().copied().max_by(f64::total_cmp).unwrap_or(1.0);
        // Whole numbers, and small.
        let first = (smallest - 0.05).floor() as i32;
        let last = (largest + 0.05).ceil() as i32;
        let steps = (2..10).map(|step| f64::from(step).log10());
        let between = (first..last)
            .flat_map(|decade| steps.clone().map(move |step| f64::from(decade) + step));
        Axis {
            range: f64::from(first)..f64::from(last),
            labelled: (first..=last).map(f64::from).collect(),
            between: between.collect(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, power: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (power - self.range.start) / (self.range.end - self.range.start);
        from + (part * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => [&*self.labelled, &self.between].concat(),
            false => self.labelled.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, power: &f64) -> String {
        label(*power)
    }
}

/// This power of ten as a label.
pub(super) fn label(power: f64) -> String {
    let number = 10_f64.powf(power);
    match number {
        _ if number >= 999_999.5 => format!("{}M", rounded(number / 1e6)),
        _ if number >= 9_999.5 => format!("{}k", rounded(number / 1e3)),
        _ => rounded(number),
    }
}

fn rounded(number: f64) -> String {
    match number {
        _ if number >= 1.0 => format!("{number:.0}"),
        _ => format!("{number:.6}").trim_end_matches('0').to_owned(),
    }
}

pub(super) fn colour(place: usize) -> RGBColor {
    COLOURS[place % COLOURS.len()]
}

/// Draws a line through points in pixels.
fn draw_line(area: &Area<'_>, place: usize, points: Vec<(i32, i32)>) -> Result<(), String> {
    let stroke = colour(place).stroke_width(3);
    // Each second curve has gaps, which show the curve beneath it.
    let drawn = match place > 0 && place % 2 == 0 {
        true => area.draw(&DashedPathElement::new(points, 14, 10, stroke)),
        false => area.draw(&PathElement::new(points, stroke)),
    };
    drawn.map_err(failed)
}

/// Draws the mark of a point, of this many pixels to each side.
fn draw_marker(
    area: &Area<'_>,
    place: usize,
    size: i32,
    (across, down): (i32, i32),
) -> Result<(), String> {
    let half = size / 2;
    let outline = match place % 5 {
        // As round as a small mark can be.
        0 => vec![
            (-half, -size),
            (half, -size),
            (size, -half),
            (size, half),
            (half, size),
            (-half, size),
            (-size, half),
            (-size, -half),
        ],
        1 => vec![(0, -size - 1), (size + 1, size), (-size - 1, size)],
        2 => vec![(-size, -size), (size, -size), (size, size), (-size, size)],
        3 => vec![(0, -size - 2), (size + 2, 0), (0, size + 2), (-size - 2, 0)],
        _ => vec![(0, size + 1), (-size - 1, -size), (size + 1, -size)],
    };
    let outline = outline.into_iter();
    let mut outline: Vec<_> = outline
        .map(|(right, below)| (across + right, down + below))
        .collect();
    area.draw(&Polygon::new(outline.clone(), colour(place).filled()))
        .map_err(failed)?;
    outline.extend(outline.first().copied());
    area.draw(&PathElement::new(outline, WHITE.stroke_width(1)))
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot() -> Plot {
        let series = |name: &str, points: &[(f64, f64)]| Series {
            name: name.to_owned(),
            points: points.to_vec(),
        };
        Plot {
            title: "Notifications per release".to_owned(),
            right: "contenders".to_owned(),
            up: "notifications per release".to_owned(),
            series: vec![
                series("parent", &[(2.0, 2.0), (10.0, 10.0), (1000.0, 1000.0)]),
                series("poll", &[(2.0, 0.0), (10.0, 0.0)]),
                series("not measured", &[]),
                series("predecessor", &[(2.0, 1.0), (10.0, 1.0), (1000.0, 1.0)]),
            ],
        }
    }

    #[test]
    fn picture_names_its_axes_their_values_and_its_curves() -> anyhow::Result<()> {
        let svg = plot().to_svg()?;
        let texts: Vec<&str> = svg.lines().map(str::trim).collect();
        assert!(!svg.contains("not measured"), "{svg}");
        for text in [
            "Notifications per release",
            "contenders",
            "notifications per release",
            "parent",
            "poll (none)",
            "predecessor",
            "2",
            "10",
            "1000",
        ] {
            assert!(texts.contains(&text), "{text:?} in {svg}");
        }
        let lines = |place| {
            let RGBColor(red, green, blue) = colour(place);
            let stroke = format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\"");
            svg.matches(&stroke).count()
        };
        assert_eq!(
            [0, 1, 2, 3].map(lines),
            [2, 1, 0, 2],
            "a curve and its sample: {svg}"
        );
        Ok(())
    }

    #[test]
    fn picture_without_a_point_can_be_drawn() -> anyhow::Result<()> {
        let nothing = Plot {
            series: Vec::new(),
            ..plot()
        };
        assert!(nothing.to_svg()?.contains("</svg>"));
        Ok(())
    }

    #[test]
    fn labels_are_the_numbers_on_the_axis() {
        for (number, text) in [
            (0.01, "0.01"),
            (2.0, "2"),
            (500.0, "500"),
            (1000.0, "1000"),
            (100_000.0, "100k"),
            (1e7, "10M"),
        ] {
            assert_eq!(label(f64::log10(number)), text);
        }
    }
}
