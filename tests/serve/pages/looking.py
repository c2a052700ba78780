"""What tests ask of a page, and what they do there."""

STATE = "document.getElementById('state').dataset.state"
SHOWN = "[...document.querySelectorAll('#target p')].map((p) => p.firstChild.data).join(' ')"
SPY = """
window.spied = [];
const watched = [[AudioContext.prototype, "setSinkId"], [WakeLock.prototype, "request"]];
for (const [what, name] of watched) {
  const before = what[name];
  what[name] = function (...args) { spied.push([name, ...args]); return before.apply(this, args); };
}
"""


def start(page, words=3):
    """Start to speak, and wait for some words."""
    page.click("#begin")
    page.wait(f"{SHOWN}.split(' ').length >= {words}")


def queue_up(page):
    """Ask to speak where somebody else does, and there is room for one."""
    page.click("#begin")
    page.wait(f"{STATE} === 'queued'")


def stop(page):
    page.click("#end")
    page.wait(f"{STATE} === 'done'")


def link(page, name="share-link", what="value"):
    return page.run(f"document.getElementById('{name}').{what}")


def the_session(stage):
    (session,) = stage.service._sessions.values()
    return session


def wait_until(page, what):
    for _ in range(200):
        if what():
            return
        page.run("new Promise((done) => setTimeout(done, 20))")
    raise AssertionError("It never came to be.")


def save(page, name):
    page.click("#save summary")
    page.click(f"#save [data-file='{name}']")
