// Keeps the screen on while a page wants that and is looked at.
let wanted = false;
let lock = null;

export function keepAwake(yes) {
  wanted = yes;
  if (yes) ask();
  else lock?.release();
}

async function ask() {
  if (!wanted || document.visibilityState !== "visible" || (lock && !lock.released)) return;
  try {
    lock = await navigator.wakeLock.request("screen");
    if (!wanted) lock.release(); // by now nobody does
  } catch { /* a browser may have none, or a battery that is nearly empty */ }
}

document.addEventListener("visibilitychange", ask);
