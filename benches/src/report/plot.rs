//! Pictures of curves, as SVG.

use anyhow::Context;
use plotters::coord::Shift;
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

/// A picture of curves on logarithmic axes.
#[derive(Clone, Debug)]
pub struct Plot {
    pub title: String,
    /// The quantity on the horizontal axis, with its unit.
    pub right: String,
    /// The quantity on the vertical axis, with its unit.
    pub up: String,
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

/// The error of the drawing itself does not outlive the drawing area.
fn failed(error: impl std::error::Error) -> String {
    error.to_string()
}

impl Plot {
    pub(super) fn to_svg(&self) -> anyhow::Result<String> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        self.draw_curves(&area)
            .and_then(|()| self.draw_legend(&area))
            .and_then(|()| area.present().map_err(failed))
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot draw {:?}", self.title))?;
        drop(area);
        Ok(svg)
    }

    /// Draws the chart, left of the legend.
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
        area.fill(&WHITE).map_err(failed)?;
        let (left, _) = area.split_horizontally(WIDTH as i32 - LEGEND);
        let mut chart = ChartBuilder::on(&left)
            .caption(&self.title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(76)
            .build_cartesian_2d(right.with_key_points(places), up)
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
        for (place, series) in self.series.iter().enumerate() {
            // Larger than the curves that follow, so that the reader sees where they coincide.
            let size = 5 + 2 * (self.series.len() - 1 - place) as u32;
            let curve = LineSeries::new(series.visible(), style(place)).point_size(size);
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
            let is_visible = series.visible().next().is_some();
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

fn style(place: usize) -> ShapeStyle {
    COLOURS[place % COLOURS.len()].filled().stroke_width(3)
}
