//! Bands that lie on each other, as SVG.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::report::plot::{Area, failed, svg};

const SIZE: (u32, u32) = (960, 540);

/// The width of the names of the bands, right of them.
const LEGEND: i32 = 150;

/// What several have together, over time, on linear axes.
#[derive(Clone, Debug, Default)]
pub struct Bands {
    /// The title, above the picture.
    pub title: String,
    /// The quantity on the horizontal axis, with its unit.
    pub right: String,
    /// The quantity on the vertical axis, with its unit.
    pub up: String,
    /// The moments, in order.
    pub moments: Vec<f64>,
    /// The bands, from the lowest to the highest.
    pub bands: Vec<Band>,
}

/// What one of them has at each moment.
#[derive(Clone, Debug)]
pub struct Band {
    /// The name, beside the picture.
    pub name: String,
    /// The height at each moment.
    pub heights: Vec<f64>,
}

impl Bands {
    pub(super) fn to_svg(&self) -> anyhow::Result<String> {
        svg(&self.title, SIZE, |area| self.draw(area))
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), String> {
        area.fill(&WHITE).map_err(failed)?;
        let legend = SIZE.0 as i32 - LEGEND;
        let (curves, _) = area.split_horizontally(legend);
        let last = self.moments.last().copied().unwrap_or(1.0);
        let highest = self.tops().into_iter().flatten().fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(&curves)
            .caption(&self.title, ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(76)
            .build_cartesian_2d(0.0..last, 0.0..highest * 1.05)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc(&self.right)
            .y_desc(&self.up)
            .axis_desc_style(("sans-serif", 17))
            .label_style(("sans-serif", 15))
            .draw()
            .map_err(failed)?;
        let mut below = vec![0.0; self.moments.len()];
        let tops = self.tops();
        for (place, (band, top)) in self.bands.iter().zip(tops).enumerate() {
            let upper = self.steps(&top).into_iter();
            let lower = self.steps(&below).into_iter().rev();
            let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
            let colour = self.colour(place);
            chart
                .draw_series([Polygon::new(outline, colour.filled())])
                .map_err(failed)?;
            below = top;
            let down = 70 + 24 * (self.bands.len() - 1 - place) as i32;
            area.draw(&Rectangle::new(
                [(legend, down - 8), (legend + 24, down + 8)],
                colour.filled(),
            ))
            .map_err(failed)?;
            let style = TextStyle::from(("sans-serif", 16).into_font())
                .pos(Pos::new(HPos::Left, VPos::Center));
            area.draw(&Text::new(band.name.clone(), (legend + 32, down), style))
                .map_err(failed)?;
        }
        Ok(())
    }

    /// The edge with these heights: each height lasts until the next moment.
    fn steps(&self, heights: &[f64]) -> Vec<(f64, f64)> {
        let ends = self.moments.iter().skip(1).chain(self.moments.last());
        let times = self.moments.iter().zip(ends);
        let steps = times.zip(heights);
        steps
            .flat_map(|((begin, end), height)| [(*begin, *height), (*end, *height)])
            .collect()
    }

    /// The upper edge of each band at each moment.
    fn tops(&self) -> Vec<Vec<f64>> {
        let mut sums = vec![0.0; self.moments.len()];
        let tops = self.bands.iter().map(|band| {
            for (sum, height) in sums.iter_mut().zip(&band.heights) {
                *sum += height;
            }
            sums.clone()
        });
        tops.collect()
    }

    /// Neighbours differ in their lightness as well, so that colour-blind readers see the edge.
    fn colour(&self, place: usize) -> HSLColor {
        let hue = place as f64 / self.bands.len().max(1) as f64;
        let lightness = if place % 2 == 0 { 0.45 } else { 0.72 };
        HSLColor(hue, 0.55, lightness)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_names_its_bands_and_lays_one_on_the_other() -> anyhow::Result<()> {
        let band = |name: &str, heights: [f64; 2]| Band {
            name: name.to_owned(),
            heights: heights.to_vec(),
        };
        let bands = Bands {
            title: "Owned partitions".to_owned(),
            right: "seconds".to_owned(),
            up: "partitions".to_owned(),
            moments: vec![0.0, 1.0],
            bands: vec![band("worker 0", [3.0, 0.0]), band("worker 1", [3.0, 6.0])],
        };
        assert_eq!(bands.tops(), [[3.0, 0.0], [6.0, 6.0]]);
        let steps = [(0.0, 3.0), (1.0, 3.0), (1.0, 0.0), (1.0, 0.0)];
        assert_eq!(bands.steps(&[3.0, 0.0]), steps);
        let svg = bands.to_svg()?;
        let texts: Vec<&str> = svg.lines().map(str::trim).collect();
        for text in [
            "Owned partitions",
            "seconds",
            "partitions",
            "worker 0",
            "worker 1",
        ] {
            assert!(texts.contains(&text), "{text:?} in {svg}");
        }
        assert_eq!(svg.matches("<polygon").count(), 2, "{svg}");
        Ok(())
    }

    #[test]
    fn picture_without_a_moment_can_be_drawn() -> anyhow::Result<()> {
        assert!(Bands::default().to_svg()?.contains("</svg>"));
        Ok(())
    }
}
