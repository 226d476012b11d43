//! Pictures, as SVG: of curves, and of bands that lie on each other.

use anyhow::Context;
use plotters::chart::ChartContext;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
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

#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    /// The points. A zero and an infinite figure have no place on a logarithmic axis, and are left
    /// out. If no other point is left, the name says so. A curve without any points is not mentioned.
    pub points: Vec<(f64, f64)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

type Chart<'a, X, Y> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>;

/// The error of the drawing itself does not outlive the drawing area.
fn failed(error: impl std::error::Error) -> String {
    error.to_string()
}

impl Plot {
    pub(super) fn to_svg(&self) -> anyhow::Result<String> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        let drawn = match self.stacked {
            true => self.draw_bands(&area),
            false => self.draw_curves(&area),
        };
        drawn
            .and_then(|()| self.draw_legend(&area))
            .and_then(|()| area.present().map_err(failed))
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot draw {:?}", self.title))?;
        drop(area);
        Ok(svg)
    }

    /// The chart with these axes, left of the legend.
    fn chart<'a, X, Y>(
        &self,
        area: &Area<'a>,
        right: X,
        up: Y,
    ) -> Result<Chart<'a, X::CoordDescType, Y::CoordDescType>, String>
    where
        X: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
        Y: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
    {
        area.fill(&WHITE).map_err(failed)?;
        let (left, _) = area.split_horizontally(WIDTH as i32 - LEGEND);
        let mut chart = ChartBuilder::on(&left)
            .caption(&self.title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(76)
            .build_cartesian_2d(right, up)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .x_label_formatter(&|figure| shown(*figure))
            .y_label_formatter(&|figure| shown(*figure))
            .x_desc(&self.right)
            .y_desc(&self.up)
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 15))
            .bold_line_style(BLACK.mix(0.2))
            .light_line_style(BLACK.mix(0.06))
            .draw()
            .map_err(failed)?;
        Ok(chart)
    }

    fn draw_curves(&self, area: &Area<'_>) -> Result<(), String> {
        let points = || self.series.iter().flat_map(Series::visible);
        let mut places: Vec<f64> = points().map(|(right, _)| right).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        let ends = places.first().copied().zip(places.last().copied());
        let (first, last) = ends.unwrap_or((1.0, 10.0));
        let right = (first / 1.2..last * 1.2).log_scale();
        let powers = || points().map(|(_, up)| up.log10());
        let least = powers().min_by(f64::total_cmp).unwrap_or(0.0);
        let most = powers().max_by(f64::total_cmp).unwrap_or(1.0);
        // Whole decades, so that no point lies on the edge.
        let up = [(least - 0.05).floor(), (most + 0.05).ceil()].map(|power| 10_f64.powf(power));
        let up = (up[0]..up[1]).log_scale();
        let mut chart = self.chart(area, right.with_key_points(places), up)?;
        for (place, series) in self.series.iter().enumerate() {
            // Larger than the curves that follow, so that the reader sees where they coincide.
            let size = 5 + 2 * (self.series.len() - 1 - place) as u32;
            let curve = LineSeries::new(series.visible(), style(place)).point_size(size);
            chart.draw_series(curve).map_err(failed)?;
        }
        Ok(())
    }

    fn draw_bands(&self, area: &Area<'_>) -> Result<(), String> {
        let mut bands: Vec<Vec<(f64, f64)>> = Vec::new();
        for series in &self.series {
            let mut top = series.points.clone();
            for (place, (_, below)) in bands.last().into_iter().flatten().enumerate() {
                top[place].1 += below;
            }
            bands.push(top);
        }
        let tops = || bands.iter().flatten();
        let last = tops().map(|(at, _)| *at).fold(1.0, f64::max);
        let highest = tops().map(|(_, top)| *top).fold(1.0, f64::max);
        let mut chart = self.chart(area, 0.0..last * 1.05, 0.0..highest * 1.05)?;
        // Each band hides the part of the band above it that is not its own.
        for (place, band) in bands.iter().enumerate().rev() {
            // Each height lasts until the next moment.
            let ends = band.iter().skip(1).chain(band.last()).map(|(at, _)| *at);
            let steps = band.iter().zip(ends);
            let steps = steps.flat_map(|((at, top), end)| [(*at, *top), (end, *top)]);
            let curve = AreaSeries::new(steps, 0.0, colour(place).filled());
            chart.draw_series(curve).map_err(failed)?;
        }
        Ok(())
    }

    /// Draws the names of the series, right of the chart.
    fn draw_legend(&self, area: &Area<'_>) -> Result<(), String> {
        let left = WIDTH as i32 - LEGEND;
        let named = self.series.iter().enumerate();
        let named = named.filter(|(_, series)| !series.points.is_empty());
        for ((place, series), top) in named.zip((70..).step_by(28)) {
            let is_visible = self.stacked || series.visible().next().is_some();
            let none = if is_visible { "" } else { " (none)" };
            let name = format!("{}{none}", series.name);
            let line = PathElement::new([(left, top), (left + 34, top)], style(place));
            area.draw(&line).map_err(failed)?;
            area.draw(&Circle::new((left + 17, top), 6, style(place)))
                .map_err(failed)?;
            let text = TextStyle::from(("sans-serif", 16).into_font())
                .pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(name, (left + 42, top), text))
                .map_err(failed)?;
        }
        Ok(())
    }
}

impl Series {
    /// The points that have a place on logarithmic axes.
    fn visible(&self) -> impl Iterator<Item = (f64, f64)> {
        let is_visible = |figure: f64| figure > 0.0 && figure.is_finite();
        let points = self.points.iter().copied();
        points.filter(move |(right, up)| is_visible(*right) && is_visible(*up))
    }
}

/// After the last colour come paler ones.
fn colour(place: usize) -> RGBColor {
    let RGBColor(red, green, blue) = COLOURS[place % COLOURS.len()];
    match place / COLOURS.len() % 2 {
        0 => RGBColor(red, green, blue),
        _ => RGBColor(128 + red / 2, 128 + green / 2, 128 + blue / 2),
    }
}

fn style(place: usize) -> ShapeStyle {
    colour(place).filled().stroke_width(3)
}
