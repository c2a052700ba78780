// How it goes, in words. The names are those of the protocol and of the connection.
const SPEAKER = {
  idle: "Not listening",
  connecting: "Connecting …",
  queued: "In the queue: the server is full, and is asked again",
  listening: "Listening",
  degraded: "Listening; the server is behind",
  draining: "Listening; the server is about to end, this talk may finish",
  paused: "Paused: nothing is heard",
  reconnecting: "Reconnecting … what you say is kept",
  finishing: "Saying the rest …",
  done: "Done",
};

const LISTENER = {
  connecting: "Connecting …",
  waiting: "The talk has not begun",
  listening: "Live",
  degraded: "Live; the server is behind",
  draining: "Live",
  away: "The speaker’s connection is lost; wait a moment",
  finishing: "The speaker has ended; the rest comes",
  over: "The talk is over",
  reconnecting: "Reconnecting …",
  refused: "Not let in",
};

function teller(words) {
  return (element, state, more = "") => {
    element.dataset.state = state;
    const text = words[state] + more;
    if (element.textContent !== text) element.textContent = text; // a screen reader would say it again
  };
}

export const tellSpeaker = teller(SPEAKER);
export const tellListener = teller(LISTENER);
