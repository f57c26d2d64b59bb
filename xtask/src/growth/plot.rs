//! Curves as a self-contained picture: fonts, scripts and styles are not loaded from elsewhere.

use std::fmt::Write as _;

use super::{Curve, Expected};

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 600.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 510.0;
/// The minimum distance between the labels of two curves.
const LINE: f64 = 18.0;

/// Of medium brightness, visible on both white and black.
const COLOURS: [&str; 7] =
    ["#3b82f6", "#16a34a", "#d97706", "#db2777", "#8b5cf6", "#0d9488", "#dc2626"];
const GREY: &str = "#808890";

/// Plots the curves over size and instructions, both logarithmic: a constant cost is level, a
/// proportional one rises by one decade per decade.
pub(super) fn svg(curves: &[Curve]) -> String {
    let area = Area::new(curves);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"{GREY}\">\n\
         <title>Instructions of one piece of work while there is ever more of something \
         else</title>\n"
    );
    area.grid(&mut text);
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (number, curve) in curves.iter().enumerate() {
        line(&mut text, &area, curve, number);
        let last = curve.points.last().map_or(BOTTOM, |(_, cost)| area.y(*cost));
        ends.push((last, number));
    }
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    for ((end, number), place) in ends.iter().zip(places(&ends)) {
        label(&mut text, &area, &curves[*number], *number, *end, place);
    }
    text.push_str("</svg>\n");
    text
}

/// Returns the positions of the labels: as close to the ends of their curves as possible without
/// overlap.
fn places(ends: &[(f64, usize)]) -> Vec<f64> {
    let mut places: Vec<f64> = ends.iter().map(|(end, _)| *end).collect();
    let mut least = TOP;
    for place in &mut places {
        *place = place.max(least);
        least = *place + LINE;
    }
    let mut most = BOTTOM;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LINE;
    }
    places
}

/// The plotted range, in decades.
struct Area {
    sizes: i32,
    costs: std::ops::RangeInclusive<i32>,
}

impl Area {
    fn new(curves: &[Curve]) -> Self {
        let points = || curves.iter().flat_map(|curve| curve.points.iter());
        let decade = |number: u64| (number.max(1) as f64).log10();
        let least = points().map(|point| decade(point.1)).fold(f64::INFINITY, f64::min);
        let most = points().map(|point| decade(point.1)).fold(0.0, f64::max);
        let sizes = points().map(|point| decade(point.0)).fold(0.0, f64::max);
        let (least, most) = (least.min(most).floor() as i32, most.ceil() as i32);
        Self { sizes: (sizes.ceil() as i32).max(1), costs: least..=most.max(least + 1) }
    }

    fn x(&self, size: u64) -> f64 {
        LEFT + (size as f64).log10() / f64::from(self.sizes) * (RIGHT - LEFT)
    }

    fn y(&self, cost: u64) -> f64 {
        let (least, most) = (f64::from(*self.costs.start()), f64::from(*self.costs.end()));
        let part = ((cost as f64).log10() - least) / (most - least);
        BOTTOM - part * (BOTTOM - TOP)
    }

    fn grid(&self, text: &mut String) {
        let rule = format!("stroke=\"{GREY}\" stroke-opacity=\"0.3\"");
        for decade in self.costs.clone() {
            let y = self.y(10_u64.pow(decade.unsigned_abs()));
            let (from, below) = (LEFT - 8.0, y + 4.0);
            let _ = write!(
                text,
                "<path d=\"M{LEFT} {y:.1}H{RIGHT}\" {rule}/>\n\
                 <text x=\"{from}\" y=\"{below:.1}\" text-anchor=\"end\">{}</text>\n",
                short(decade)
            );
        }
        for decade in 0..=self.sizes {
            let x = self.x(10_u64.pow(decade.unsigned_abs()));
            let below = BOTTOM + 20.0;
            let _ = write!(
                text,
                "<path d=\"M{x:.1} {TOP}V{BOTTOM}\" {rule}/>\n\
                 <text x=\"{x:.1}\" y=\"{below}\" text-anchor=\"middle\">{}</text>\n",
                short(decade)
            );
        }
        let (above, below, middle) = (TOP - 12.0, BOTTOM + 42.0, f64::midpoint(LEFT, RIGHT));
        let _ = write!(
            text,
            "<text x=\"8\" y=\"{above}\">instructions</text>\n\
             <text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">how much there is</text>\n"
        );
    }
}

/// Formats a power of ten.
fn short(decade: i32) -> String {
    let unit = ["", "k", "M", "G"].get((decade / 3).unsigned_abs() as usize).unwrap_or(&"");
    format!("{}{unit}", 10_u32.pow((decade % 3).unsigned_abs()))
}

fn colour(number: usize) -> &'static str {
    COLOURS[number % COLOURS.len()]
}

fn line(text: &mut String, area: &Area, curve: &Curve, number: usize) {
    let mut path = String::new();
    for (size, cost) in &curve.points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{:.1} {:.1}", area.x(*size), area.y(*cost));
    }
    let colour = colour(number);
    let dashes = match curve.expected {
        Expected::Flat => "",
        Expected::Linear => " stroke-dasharray=\"5 4\"",
    };
    let _ = writeln!(
        text,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>"
    );
    for (size, cost) in &curve.points {
        let (x, y) = (area.x(*size), area.y(*cost));
        let _ = writeln!(text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }
}

/// Draws the name of a curve to its right, connected by a thin line.
fn label(text: &mut String, area: &Area, curve: &Curve, number: usize, end: f64, place: f64) {
    let colour = colour(number);
    let from = curve.points.last().map_or(RIGHT, |(size, _)| area.x(*size)) + 5.0;
    let (bend, to, below) = (RIGHT + 6.0, RIGHT + 30.0, place + 4.0);
    let _ = write!(
        text,
        "<path d=\"M{from:.1} {end:.1}H{bend}L{to} {place:.1}\" fill=\"none\" \
         stroke=\"{colour}\" stroke-opacity=\"0.5\"/>\n\
         <text x=\"{}\" y=\"{below:.1}\" fill=\"{colour}\">{}: {}</text>\n",
        to + 4.0,
        escaped(&curve.around),
        escaped(&curve.work)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_and_stay_inside() {
        let ends = [(100.0, 0), (101.0, 1), (300.0, 2), (509.0, 3), (510.0, 4)];
        let places = places(&ends);
        assert_eq!(places[..3], [100.0, 118.0, 300.0]);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= LINE));
        assert_eq!(places[4], BOTTOM);
    }

    #[test]
    fn powers_of_ten_are_short() {
        let written = [0, 1, 2, 3, 5, 6, 8].map(short);
        assert_eq!(written, ["1", "10", "100", "1k", "100k", "1M", "100M"]);
    }
}
