// A phone stops all sound while it rings or sleeps, and does not begin again by itself. Returns what ends this.
export function keepRunning(context) {
  const wake = () => { if (!["running", "closed"].includes(context.state)) context.resume().catch(() => {}); };
  context.addEventListener("statechange", wake);
  document.addEventListener("visibilitychange", wake);
  return () => document.removeEventListener("visibilitychange", wake);
}
