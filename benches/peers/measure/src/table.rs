/// A table of figures with a column for each program and a row for each measurement.
#[derive(Debug, Default)]
pub(crate) struct Table {
    titles: Vec<String>,
    /// Row names, each with a cell for every column so far.
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// Adds a column. Rows without a figure get a dash.
    pub(crate) fn column(&mut self, title: &str, figures: Vec<(String, String)>) {
        let before = self.titles.len();
        self.titles.push(title.into());
        for (name, figure) in figures {
            let found = self.rows.iter().position(|(known, _)| *known == name);
            let row = found.unwrap_or_else(|| {
                self.rows.push((name, vec!["–".into(); before]));
                self.rows.len() - 1
            });
            self.rows[row].1.push(figure);
        }
        for (_, cells) in &mut self.rows {
            cells.resize(before + 1, "–".into());
        }
    }

    pub(crate) fn print(&self, title: &str) {
        println!("\n### {title}\n\n| Work | {} |", self.titles.join(" | "));
        println!("|---|{}", "---:|".repeat(self.titles.len()));
        for (name, cells) in &self.rows {
            println!("| {name} | {} |", cells.join(" | "));
        }
    }
}

/// Formats the median of several measurements, and half of the distance between the least and the greatest in
/// per cent of it.
pub(crate) fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (least, most) = (values[0], values[values.len() - 1]);
    let median = values[values.len() / 2];
    format!("{} ± {:.0} %", number(median), (most - least) / median * 50.0)
}

/// Formats a number with about three significant digits and a space between thousands.
pub(crate) fn number(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}
