//! Tests of `growth`.

use super::*;

fn curve(is_linear: bool, costs: &[u64]) -> Curve {
    let points = (0..).map(|decade| 10_u64.pow(decade)).zip(costs.iter().copied()).collect();
    Curve { around: "sheep".into(), work: "a dog".into(), is_linear, points }
}

#[test]
fn unexpected_growth_is_found() {
    assert!(check(&[curve(false, &[100, 200, 250, 299])]).is_ok());
    assert!(check(&[curve(false, &[100, 200, 250, 301])]).is_err());
    assert!(check(&[curve(true, &[1, 10, 100, 1000])]).is_ok());
}

#[test]
fn points_of_the_same_work_are_one_curve() {
    let count = |line: &str, instructions| {
        let fields = line.split(' ').map(String::from).collect();
        Count { fields, instructions }
    };
    let mut curves = Vec::new();
    for (line, instructions) in
        [("sheep dog flat 1 2", 20), ("sheep dog flat 10 2", 21), ("sheep cat linear 1 1", 5)]
    {
        assert_eq!(add(&mut curves, &count(line, instructions)), Some(()));
    }
    let found: Vec<_> =
        curves.iter().map(|it| (it.work.as_str(), it.is_linear, &it.points[..])).collect();
    let dog: [(u64, u64); 2] = [(1, 10), (10, 11)];
    assert_eq!(found, [("dog", false, &dog[..]), ("cat", true, &[(1, 5)])]);
    for broken in ["sheep dog steep 1 2", "sheep dog flat 1", "sheep dog flat one 2"] {
        assert_eq!(add(&mut curves, &count(broken, 1)), None, "{broken}");
    }
}
