// A page that is opened from the disk may not start a Worker, which the search is. There, the
// worker's script runs in a hidden frame of the page, with what a worker has: postMessage and
// importScripts.
if (location.protocol === "file:") {
  const load = (frame, address) =>
    new Promise((loaded, failed) => {
      const script = frame.document.createElement("script")
      script.onload = loaded
      script.onerror = () => failed(new Error(`cannot load ${address}`))
      script.src = address
      frame.document.body.append(script)
    })

  window.Worker = class extends EventTarget {
    constructor(address) {
      super()
      const element = document.createElement("iframe")
      element.hidden = true
      document.body.append(element)
      const frame = element.contentWindow
      frame.document.open()
      frame.document.write("<!doctype html><body></body>")
      frame.document.close()
      frame.postMessage = (data) => this.tell(new MessageEvent("message", { data }))
      frame.importScripts = async (...addresses) => {
        for (const each of addresses) await load(frame, each)
      }
      this.element = element
      this.ready = load(frame, address)
      this.ready.catch((error) => this.tell(new ErrorEvent("error", { error })))
    }

    tell(event) {
      this.dispatchEvent(event)
      this[`on${event.type}`]?.(event)
    }

    postMessage(data) {
      const frame = this.element.contentWindow
      const event = new frame.MessageEvent("message", { data: structuredClone(data) })
      this.ready.then(() => frame.dispatchEvent(event))
    }

    terminate() {
      this.element.remove()
    }
  }
}
