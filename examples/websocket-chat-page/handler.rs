// GET /chat/{room}: the page of the example websocket-chat. A socket that is closed is opened again, as when the
// endpoint is deployed anew (1012); the room tells the latest messages then.
//
//     http://localhost:8080/chat/lobby

use rust_edge_gateway_sdk::prelude::*;

const PAGE: &str = r##"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Chat</title>
<style>
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
  ol { list-style: none; padding: 0; height: 20rem; overflow-y: auto; border: 1px solid #888; border-radius: .5rem }
  li { padding: 0 .75rem; overflow-wrap: anywhere }
  form { display: flex; gap: .5rem }
  input { font: inherit; flex: 1; min-width: 0 }
  input[name=name] { flex: 0 1 8rem }
</style>
<h1>Chat</h1>
<p role="status" id="state">Choose a name.</p>
<ol id="messages" aria-live="polite" aria-label="Messages" tabindex="0"></ol>
<form id="form">
  <input name="name" aria-label="Your name" placeholder="Your name" maxlength="40" required>
  <input name="text" aria-label="Message" placeholder="Message" maxlength="2000" required>
  <button>Send</button>
</form>
<script>
  const [state, messages, form] = ['state', 'messages', 'form'].map((id) => document.getElementById(id));
  const waiting = [];
  let socket;

  function connect() {
    const url = new URL(`${location.pathname.replace(/\/$/, '')}/socket`, location);
    url.protocol = url.protocol.replace('http', 'ws');
    url.searchParams.set('name', form.elements.name.value);
    socket = new WebSocket(url);
    socket.onopen = () => {
      state.textContent = 'Connected.';
      // The room tells the latest messages again.
      messages.replaceChildren();
      for (const text of waiting.splice(0)) socket.send(text);
    };
    socket.onmessage = ({ data }) => {
      const { name, text, error } = JSON.parse(data);
      const line = document.createElement('li');
      line.textContent = error ?? `${name}: ${text}`;
      messages.append(line);
      line.scrollIntoView({ block: 'nearest' });
    };
    socket.onclose = ({ code }) => {
      state.textContent = `Not connected (${code}); trying again.`;
      setTimeout(connect, 1000);
    };
  }

  form.onsubmit = (event) => {
    event.preventDefault();
    form.elements.name.readOnly = true;
    const text = form.elements.text.value;
    form.elements.text.value = '';
    if (socket?.readyState === WebSocket.OPEN) return socket.send(text);
    waiting.push(text);
    if (socket === undefined) connect();
  };
</script>
"##;

fn handle(_req: Request) -> Response {
    Response::html(200, PAGE)
}

handler_loop!(handle);
