//! Commands of the application to a machine, by the verb of an operation, over either binding.

use mcp_sansio::catalog::Changes;
use mcp_sansio::peer::{
    Applied, CallHandle, ClientCommand, ClientMachine, CommandError, InputHandle, MethodName,
    RequestHandle, ServerCommand, ServerMachine,
};
use mcp_sansio::{Instant, LoggingLevel};

use super::inputs;
use super::operation::Operation;

/// The result of a command; `None` if the operation is not a command.
pub(super) type Asked = Option<Result<Applied, CommandError>>;

/// Runs commands unrelated to the server's questions and requests. `call` is the target of a
/// cancellation.
pub(super) fn ask_client(
    machine: &mut impl ClientMachine,
    operation: &Operation<'_>,
    call: Option<CallHandle>,
    now: Instant,
) -> Asked {
    let (params, options) = (inputs::params(operation), inputs::call_options(operation));
    let filter = inputs::filter(operation);
    let command = match operation.verb {
        b'c' => {
            let method = MethodName::Known(inputs::method(operation));
            ClientCommand::Call { method, params: params.into(), options: options.into() }
        }
        b'C' => {
            let method = MethodName::Other(operation.text().into());
            let (params, options) = (inputs::EMPTY.into(), options.into());
            ClientCommand::Call { method, params, options }
        }
        b's' => ClientCommand::Subscribe(filter.into()),
        b'o' => ClientCommand::Notify { method: inputs::method(operation), params: params.into() },
        b'l' => ClientCommand::SetLogLevel(LoggingLevel::ALL[operation.number % 8]),
        b'x' => ClientCommand::Cancel { call: call?, reason: operation.text().into() },
        b'k' if operation.text == b"ill" => ClientCommand::Close,
        _ => return None,
    };
    Some(machine.apply(command, now))
}

/// Answers or cancels a question. Each question is ended once.
pub(super) fn end_input(
    machine: &mut impl ClientMachine,
    operation: &Operation<'_>,
    input: InputHandle,
    now: Instant,
) -> Result<Applied, CommandError> {
    let params = inputs::params(operation);
    let command = match operation.verb {
        b'i' => ClientCommand::AnswerInput { input, result: params.into() },
        _ => ClientCommand::RefuseInput { input, error: inputs::error(operation) },
    };
    let outcome = machine.apply(command, now);
    let again = machine.answer_input_with(input, &inputs::EMPTY, now);
    assert!(again.is_err(), "answered twice");
    outcome
}

/// Runs commands that answer no request. `request` is the subject of the operation, and `call` the
/// target of a cancellation.
pub(super) fn ask_server(
    machine: &mut impl ServerMachine,
    operation: &Operation<'_>,
    request: Option<RequestHandle>,
    call: Option<CallHandle>,
    now: Instant,
) -> Asked {
    let (params, options) = (inputs::params(operation), inputs::call_options(operation));
    let text = operation.text();
    let command = match operation.verb {
        b'p' => ServerCommand::Progress {
            request: request?,
            progress: f64::from(operation.number as u32) / 8.0,
            total: text.parse().ok(),
            message: Some(text.into()),
        },
        b'l' => {
            let level = LoggingLevel::ALL[operation.number % 8];
            let written = machine.log(request, level, None, text, now);
            assert!(written.is_ok(), "a string can be written: {written:?}");
            return Some(written.map(|()| Applied::Done));
        }
        b'u' => ServerCommand::ResourceUpdated { uri: text.into() },
        b'n' => {
            let [tools, resources, prompts] = [1, 2, 4].map(|it| operation.number & it > 0);
            ServerCommand::Announce(
                Changes::new().tools(tools).resources(resources).prompts(prompts),
            )
        }
        b'c' => {
            let method = inputs::method(operation);
            ServerCommand::Call { method, params: params.into(), options: options.into() }
        }
        b'o' => ServerCommand::Notify { method: inputs::method(operation), params: params.into() },
        b'x' => ServerCommand::Cancel { call: call?, reason: text.into() },
        b'k' if operation.text == b"ill" => ServerCommand::Close,
        _ => return None,
    };
    Some(machine.apply(command, now))
}
