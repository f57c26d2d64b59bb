use super::*;

const TIME: &str = "2026-01-01T00:00:00Z";

#[test]
fn a_task_result_is_nested_at_2025_11_25_and_flat_since() {
    // Rule: [TASK-001] [TASK-010] [TASK-026].
    let task = Task::new("t", TIME).poll_interval_ms(500);
    let result = CreateTaskResult { task, meta: None };
    let november = result.to_json_at(Revision::V2025_11_25).unwrap();
    assert_eq!(
        november.as_str(),
        r#"{"task":{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null,"pollInterval":500}}"#
    );
    let july = result.to_json_at(Revision::V2026_07_28).unwrap();
    assert_eq!(
        july.as_str(),
        r#"{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":500}"#
    );
    assert_eq!(november.decode::<CreateTaskResult>().unwrap(), result);
    assert_eq!(july.decode::<CreateTaskResult>().unwrap(), result);
}

#[test]
fn a_completed_task_contains_its_result_since_2026_07_28() {
    // Rule: [TASK-030].
    let result = Json::from_serialize(&[1]).unwrap();
    let done = GetTaskResult::from(DetailedTask::completed(Task::new("t", TIME), result));
    let july = done.to_json_at(Revision::V2026_07_28).unwrap();
    assert!(july.as_str().starts_with(r#"{"resultType":"complete","taskId":"t""#));
    assert!(july.as_str().ends_with(r#""result":[1]}"#));
    assert_eq!(july.decode::<GetTaskResult>().unwrap(), done);
    assert!(!done.to_json_at(Revision::V2025_11_25).unwrap().as_str().contains("result"));
    let bare = DetailedTask::from(Task::new("t", TIME).status(TaskStatus::Completed));
    assert!(GetTaskResult::from(bare).to_json_at(Revision::V2026_07_28).is_err());
}

#[test]
fn cancelling_returns_the_task_at_2025_11_25_and_an_acknowledgement_since() {
    // Rule: [TASK-018] [TASK-033].
    let task = Task::new("t", TIME).status(TaskStatus::Cancelled);
    let result = CancelTaskResult { task: Some(task), meta: None };
    let november = result.to_json_at(Revision::V2025_11_25).unwrap();
    assert_eq!(november.decode::<CancelTaskResult>().unwrap(), result);
    let july = result.to_json_at(Revision::V2026_07_28).unwrap();
    assert_eq!(july.as_str(), r#"{"resultType":"complete"}"#);
    assert_eq!(july.decode::<CancelTaskResult>().unwrap(), CancelTaskResult::default());
    assert!(CancelTaskResult::default().to_json_at(Revision::V2025_11_25).is_err());
}

#[test]
fn three_statuses_are_terminal() {
    // Rule: [TASK-009].
    let terminal = ["working", "input_required", "completed", "failed", "cancelled", "odd"]
        .map(|text| TaskStatus::from(text).is_terminal());
    assert_eq!(terminal, [false, false, true, true, true, false]);
}

#[test]
fn times_of_a_task_are_any_numbers_under_either_name() {
    // Rule: [TASK-010].
    let read = |times: &str| {
        let task = r#""taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"c""#;
        let task: Task = serde_json::from_str(&alloc::format!("{{{task},{times}}}")).unwrap();
        (task.ttl_ms, task.poll_interval_ms)
    };
    assert_eq!(read(r#""ttl":null"#), (None, None));
    assert_eq!(read(r#""ttlMs":-1,"pollIntervalMs":1500.5"#), (Some(0), Some(1500)));
    assert_eq!(read(r#""ttl":1e99,"pollInterval":2"#), (Some(u64::MAX), Some(2)));
    assert_eq!(read(r#""ttl":5,"ttlMs":6,"pollIntervalMs":7"#), (Some(6), Some(7)));
}
