// Write Millstream functions in JavaScript or TypeScript: functions over rows whose types are declared once, with state and
// timers that the host keeps.
//
// A function's own memory is no state: the host may drop an instance at any batch boundary and go on with a new one.

export { Reject } from "./context.js";
export { MismatchError } from "./columns.js";
export { aggregate, filter, map, process, window } from "./functions.js";
export { parameter } from "./parameters.js";
export { listState, mapState, operatorState, unionState, valueState } from "./state.js";
export { DeclarationError, row, t } from "./types.js";
