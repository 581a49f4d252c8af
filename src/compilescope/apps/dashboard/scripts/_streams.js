// What scripts share that follow a stream of the server. First by its name: others use it.
(() => {
  const FULL_MS = 30000, AGAIN_MS = 5000;

  // Follows `address`. `heard`: kind of update -> function of its data and id. `told(state, words)`
  // says "open", "lost" (it is tried again by itself) or "over" (it is not). `after`: the id of
  // the last update that the page holds already.
  // A hidden tab lets go of its connection: a browser has but six of them for one server.
  function follow(address, {heard, told = () => {}, after = ''}) {
    let last = after, source = null, timer = 0, over = false;

    function close() {
      clearTimeout(timer);
      source?.close();
      source = null;
    }

    function end(words) {
      over = true;
      close();
      told('over', words);
    }

    function open() {
      close();
      if (over || document.hidden) return;
      const url = new URL(address, location.href);
      if (last) url.searchParams.set('after', last);
      source = new EventSource(url);
      source.onopen = () => told('open', '');
      for (const [kind, act] of Object.entries(heard)) {
        source.addEventListener(kind, (event) => {
          if (event.lastEventId) last = event.lastEventId;
          act(JSON.parse(event.data), last);
        });
      }
      source.onerror = () => {
        told('lost', 'The connection is lost. Trying again…');
        // A browser comes back by itself unless it was refused; it doesn't say why.
        if (source?.readyState === EventSource.CLOSED) refused(url);
      };
    }

    async function refused(url) {
      close();
      const asking = new AbortController();
      let wait = AGAIN_MS;
      try {
        const answer = await fetch(url, {
          headers: {accept: 'application/json'}, signal: asking.signal,
        });
        const words = answer.ok ? '' : (await answer.json()).error;
        asking.abort();
        if (answer.status === 503) {
          wait = 1000 * answer.headers.get('retry-after') || FULL_MS;
          told('lost', `${words} Trying again in ${Math.round(wait / 1000)} s.`);
        } else if (!answer.ok && answer.status < 500) {
          end(words);
          return;
        }
      } catch {
        // The server is away: its next answer tells more.
      }
      timer = setTimeout(open, wait * (1 + Math.random() / 2));
    }

    const seen = () => { if (document.hidden) close(); else if (!source) open(); };
    document.addEventListener('visibilitychange', seen);
    open();
    return {
      stop() { over = true; close(); document.removeEventListener('visibilitychange', seen); },
    };
  }

  window.compilescope = {...window.compilescope, follow};
})();
