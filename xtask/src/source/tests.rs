//! Tests of `source`.

use super::*;

#[test]
fn a_comment_is_neither_a_literal_nor_code() {
    let text = "// a\nlet b = \"// no\"; // c\n/// d\nfn e() { r#\"\n// no\"# } //! f";
    let source = Source::new(text);
    let found: Vec<_> =
        source.comments.iter().map(|it| (it.line, it.text.as_str(), it.alone)).collect();
    assert_eq!(found, [(1, "a", true), (2, "c", false), (3, "d", true), (5, "f", false)]);
    assert_eq!(source.code()[..3], ["let", "b", "="]);
}

#[test]
fn a_test_is_all_of_its_item_and_the_comments_above() {
    let text = "fn a() {}\n// b\n// c\n#[tokio::test(x)]\n/// d\nasync fn one() {\n // e\n}\n// f\n\
                #[cfg(test)]\npub(crate) mod g;\n#[cfg(test)]\nmod h { // i\n}\n";
    let source = Source::new(text);
    let [one] = &source.tests[..] else { panic!("{source:?}") };
    assert_eq!((one.name.as_str(), one.line), ("one", 2));
    let inside: Vec<_> = source.comments.iter().filter(|it| one.contains(it.at)).collect();
    assert_eq!(inside.iter().map(|it| it.text.as_str()).collect::<String>(), "bcde");
    let files: Vec<_> = source.test_files(Path::new("a/mod.rs")).collect();
    assert_eq!(files, [Path::new("a/g")]);
    assert!(source.is_test(source.comments.last().unwrap().at) && !source.is_test(0));
    assert!(!source.code().contains(&"h"));
}

#[test]
fn a_table_is_a_constant_that_a_test_names() {
    let text = "// a\nconst ROWS: [u8; 1] = [1];\nstatic OTHER: u8 = 1;\n\
                const fn f<const N: usize>(x: &'static u8) {}\n\
                #[test]\nfn one() { assert(ROWS, \"OTHER\", N) }\n";
    let source = Source::new(text);
    let found: Vec<_> = source.tables().map(|it| (it.name.as_str(), it.line)).collect();
    assert_eq!(found, [("ROWS", 1)]);
}

#[test]
fn a_function_is_found_where_it_is_said_to_be() {
    let text = "pub fn parse() {}\nimpl<T> Server<T>\nwhere\n    T: X,\n{\n    pub fn post(&self) \
                {}\n}\nimpl Drop for Other {\n    fn drop(&mut self) {}\n}\n// fn absent() {}\n";
    let source = Source::new(text);
    for there in ["parse", "Server::post", "Other::drop", "Drop::drop"] {
        assert!(source.has_function(there), "{there}");
    }
    for absent in ["post", "Server::parse", "Other::post", "absent", "Server::drop", "pars"] {
        assert!(!source.has_function(absent), "{absent}");
    }
}
