/** Entry of the web UI. */
import './styles/index.css';
import { render } from 'preact';
import { App } from './app.js';
import { followFocus } from './base/focus.js';
import { followScrolling } from './base/scroll.js';

const root = document.getElementById('app');
followScrolling();
followFocus();
if (root) render(<App />, root);
