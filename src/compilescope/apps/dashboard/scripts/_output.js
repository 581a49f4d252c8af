/* What a program prints, in a <pre> that follows it: shared by pages that show output. */
(() => {
  const MOST = 2_000_000;
  /* A line as a terminal leaves it once progress was drawn over. */
  const settled = (line) => line.replace(/\r+$/, "").split("\r").pop();

  /* Returns print(text). `dropped` is called when the beginning had to go. */
  function printer(output, dropped = () => {}) {
    const lines = document.createTextNode(""), last = document.createTextNode("");
    const text = output.textContent, cut = text.lastIndexOf("\n") + 1;
    lines.data = text.slice(0, cut);
    let pending = last.data = text.slice(cut);
    output.replaceChildren(lines, last);
    const toEnd = () => { output.scrollTop = output.scrollHeight; };
    const atEnd = () => output.scrollHeight - output.scrollTop - output.clientHeight < 30;
    toEnd();
    return (more) => {
      const follows = atEnd();
      const whole = (pending + more).split("\n");
      pending = whole.pop();
      if (whole.length) lines.appendData(whole.map(settled).join("\n") + "\n");
      last.data = settled(pending);
      if (lines.length > MOST) {
        lines.deleteData(0, lines.data.indexOf("\n", MOST / 2) + 1);
        dropped();
      }
      if (follows) toEnd();
    };
  }

  window.compilescope = {...window.compilescope, printer};
})();
