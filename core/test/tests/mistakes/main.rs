//! Each mistake in `cases` fails to compile with the message in its `.stderr` file, which says what to
//! write instead. `TRYBUILD=overwrite` replaces these files; the messages are those of the compiler
//! that `.ci/run` uses.

#[test]
fn the_compiler_names_the_mistake() {
    // Without a case that passes, dependencies are checked and not built.
    trybuild::TestCases::new().compile_fail("tests/mistakes/cases/*.rs");
}
