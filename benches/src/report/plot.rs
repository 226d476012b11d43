//! Pictures, as SVG: of curves, and of bands that lie on each other.

use std::ops::Range;

use anyhow::Context;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use plotters::style::RGBAColor;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::table::shown;

const WIDTH: u32 = 960;

const HEIGHT: u32 = 540;

/// The width of the names of the series, right of them.
const LEGEND: i32 = 250;

/// Colours that colour-blind readers can distinguish, by Okabe and Ito.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// A picture of curves on logarithmic axes, or of bands over time.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// The title, above the picture.
    pub title: String,
    /// The quantity on the horizontal axis, with its unit.
    pub right: String,
    /// The quantity on the vertical axis, with its unit.
    pub up: String,
    /// True if the series are bands that lie on each other, the first one lowest. They have the same
    /// moments, each height lasts until the next moment, and the axes are linear.
    pub stacked: bool,
    /// The series. Series of the same place have the same colour in all pictures.
    pub series: Vec<Series>,
}

/// A curve or a band.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name, beside the picture.
    pub name: String,
    /// The points. A zero and an infinite figure have no place on a logarithmic axis, and are left
    /// out. If no other point is left, the name says so. A curve without any points is not mentioned.
    pub points: Vec<(f64, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An axis. Its places are figures or powers of ten.
struct Axis {
    range: Range<f64>,
    /// The places of its lines, and of the light lines between these.
    lines: Vec<f64>,
    light: Vec<f64>,
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (place - self.range.start) / (self.range.end - self.range.start);
        first + (part * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => self.light.clone(),
            false => self.lines.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// The error of the drawing itself does not outlive the drawing area.
fn failed(error: impl std::error::Error) -> String {
    error.to_string()
}

impl Plot {
    pub(super) fn to_svg(&self) -> anyhow::Result<String> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        self.draw(&area)
            .and_then(|()| area.present().map_err(failed))
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot draw {:?}", self.title))?;
        drop(area);
        Ok(svg)
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), String> {
        area.fill(&WHITE).map_err(failed)?;
        let legend = WIDTH as i32 - LEGEND;
        let (right, up) = self.axes();
        let (curves, _) = area.split_horizontally(legend);
        let mut chart = ChartBuilder::on(&curves)
            .caption(&self.title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(76)
            .build_cartesian_2d(right, up)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_label_formatter(&|place| shown(self.figure(*place)))
            .y_label_formatter(&|place| shown(self.figure(*place)))
            .x_desc(&self.right)
            .y_desc(&self.up)
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 15))
            .bold_line_style(BLACK.mix(0.2))
            .light_line_style(BLACK.mix(0.06))
            .draw()
            .map_err(failed)?;
        for (place, outline) in self.bands().into_iter().enumerate() {
            let band = Polygon::new(outline, colour(place).filled());
            chart.draw_series([band]).map_err(failed)?;
        }
        let mut top = 70;
        for (place, series) in self.series.iter().enumerate() {
            if series.points.is_empty() {
                continue;
            }
            let points = self
                .visible(series)
                .map(|point| chart.backend_coord(&point));
            let points: Vec<(i32, i32)> = points.collect();
            let name = match points.is_empty() {
                false => series.name.clone(),
                true => format!("{} (none)", series.name),
            };
            if !self.stacked {
                self.draw_series(area, place, points)?;
            }
            draw_line(area, place, vec![(legend, top), (legend + 34, top)])?;
            draw_marker(area, place, 6, (legend + 17, top))?;
            let style = TextStyle::from(("sans-serif", 16).into_font())
                .pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(name, (legend + 42, top), style))
                .map_err(failed)?;
            top += 28;
        }
        Ok(())
    }

    /// Draws the points of a curve, which are in pixels.
    fn draw_series(
        &self,
        area: &Area<'_>,
        place: usize,
        points: Vec<(i32, i32)>,
    ) -> Result<(), String> {
        // Larger than the curves that follow, so that the reader sees where they coincide.
        let size = 5 + 2 * (self.series.len() - 1 - place) as i32;
        if points.len() > 1 {
            draw_line(area, place, points.clone())?;
        }
        for point in points {
            draw_marker(area, place, size, point)?;
        }
        Ok(())
    }

    fn axes(&self) -> (Axis, Axis) {
        let points = || self.series.iter().flat_map(|series| self.visible(series));
        let (right, up) = (points().map(|it| it.0), points().map(|it| it.1));
        if self.stacked {
            let tops = self.tops().into_iter().flatten();
            return (axis_from_zero(right), axis_from_zero(tops));
        }
        (axis_at(right), axis_in_decades(up))
    }

    /// The figure at a place of an axis.
    fn figure(&self, place: f64) -> f64 {
        match self.stacked {
            true => place,
            false => 10_f64.powf(place),
        }
    }

    /// The points that have a place in the picture, as places on the axes.
    fn visible(&self, series: &Series) -> impl Iterator<Item = (f64, f64)> {
        let points = series.points.iter().copied();
        let places = points.map(move |(right, up)| match self.stacked {
            true => (right, up),
            false => (right.log10(), up.log10()),
        });
        places.filter(|(right, up)| right.is_finite() && up.is_finite())
    }

    /// The upper edge of each band at each moment.
    fn tops(&self) -> Vec<Vec<f64>> {
        let mut sums = Vec::new();
        let tops = self.series.iter().map(|band| {
            sums.resize(band.points.len(), 0.0);
            for (sum, (_, height)) in sums.iter_mut().zip(&band.points) {
                *sum += height;
            }
            sums.clone()
        });
        tops.collect()
    }

    /// The outlines of the bands; none of curves.
    fn bands(&self) -> Vec<Vec<(f64, f64)>> {
        if !self.stacked {
            return Vec::new();
        }
        let moments = self.series.first().map_or(&[][..], |band| &band.points);
        let moments: Vec<f64> = moments.iter().map(|(at, _)| *at).collect();
        let mut below = vec![0.0; moments.len()];
        let outlines = self.tops().into_iter().map(|top| {
            let upper = steps(&moments, &top);
            let lower = steps(&moments, &below).into_iter().rev();
            below = top;
            upper.into_iter().chain(lower).collect()
        });
        outlines.collect()
    }
}

/// The edge with these heights: each height lasts until the next moment.
fn steps(moments: &[f64], heights: &[f64]) -> Vec<(f64, f64)> {
    let ends = moments.iter().skip(1).chain(moments.last());
    let steps = moments.iter().zip(ends).zip(heights);
    steps
        .flat_map(|((begin, end), height)| [(*begin, *height), (*end, *height)])
        .collect()
}

/// The largest of these, or another one if there are none.
fn largest(places: &[f64], otherwise: f64) -> f64 {
    places
        .iter()
        .copied()
        .max_by(f64::total_cmp)
        .unwrap_or(otherwise)
}

/// An axis from zero to the largest place, with about five lines.
fn axis_from_zero(places: impl Iterator<Item = f64>) -> Axis {
    let places: Vec<f64> = places.collect();
    let last = largest(&places, 1.0).max(1.0);
    let decade = 10_f64.powf((last / 5.0).log10().floor());
    let step = [2.0, 5.0, 10.0].map(|of| of * decade);
    let step = step.into_iter().find(|step| last / step <= 5.0);
    let step = step.unwrap_or(last);
    let lines = (0..=(last / step) as u32).map(|line| f64::from(line) * step);
    Axis {
        range: 0.0..last * 1.05,
        lines: lines.collect(),
        light: Vec::new(),
    }
}

/// An axis with a line at each of these places.
fn axis_at(places: impl Iterator<Item = f64>) -> Axis {
    const AROUND: f64 = 0.08;
    let mut places: Vec<f64> = places.collect();
    places.sort_unstable_by(f64::total_cmp);
    places.dedup();
    let first = places.first().copied().unwrap_or(0.0);
    let last = largest(&places, 1.0);
    Axis {
        range: first - AROUND..last + AROUND,
        lines: places,
        light: Vec::new(),
    }
}

/// An axis with a line at each power of ten, from below the places to above them.
fn axis_in_decades(powers: impl Iterator<Item = f64>) -> Axis {
    let powers: Vec<f64> = powers.collect();
    let smallest = powers.iter().copied().min_by(f64::total_cmp).unwrap_or(0.0);
    // Whole numbers, and small.
    let first = (smallest - 0.05).floor() as i32;
    let last = (largest(&powers, 1.0) + 0.05).ceil() as i32;
    let steps = (2..10).map(|step| f64::from(step).log10());
    let between =
        (first..last).flat_map(|decade| steps.clone().map(move |step| f64::from(decade) + step));
    Axis {
        range: f64::from(first)..f64::from(last),
        lines: (first..=last).map(f64::from).collect(),
        light: between.collect(),
    }
}

/// After the last colour come paler ones.
fn colour(place: usize) -> RGBAColor {
    let pale = place / COLOURS.len() % 2 == 1;
    COLOURS[place % COLOURS.len()].mix(if pale { 0.5 } else { 1.0 })
}

/// Draws a line through points in pixels.
fn draw_line(area: &Area<'_>, place: usize, points: Vec<(i32, i32)>) -> Result<(), String> {
    let line = PathElement::new(points, colour(place).stroke_width(3));
    area.draw(&line).map_err(failed)
}

/// Draws the mark of a point, of this many pixels to each side.
fn draw_marker(area: &Area<'_>, place: usize, size: i32, at: (i32, i32)) -> Result<(), String> {
    let mark = Circle::new(at, size, colour(place).filled());
    area.draw(&mark).map_err(failed)
}
