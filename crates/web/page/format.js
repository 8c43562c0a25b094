// How numbers and states are told to a person.

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export const time = (at) => clock.format(new Date(at));

export const date = (at) => calendar.format(new Date(at));

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${String(Math.floor(seconds % 60)).padStart(2, '0')} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

const isNumber = (value) => typeof value === 'number';

// Of a session: `running`, `exit 3`, `SIGKILL`.
export function sessionStatus(status) {
  if (status.kind !== 'exited') return status.kind;
  return isNumber(status.exitCode) ? `exit ${status.exitCode}` : status.signal ?? 'exited';
}

const REASONS = {
  stdin_read: 'waits for input',
  inferred_idle: 'quiet',
  timeout: 'still runs',
  session_exit: 'session ended',
};

// Of a command: its exit status, or how the send ended.
export const commandStatus = ({ exitStatus, reason }) =>
  isNumber(exitStatus) ? `exit ${exitStatus}` : REASONS[reason] ?? reason ?? '';

export const failed = (exitStatus) => isNumber(exitStatus) && exitStatus !== 0;
