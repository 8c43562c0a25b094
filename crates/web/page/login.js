// The page of whoever has no cookie yet: sends the token of the address's fragment, or asks for it.

const form = document.getElementById('login');
const field = document.getElementById('token');
const problem = document.getElementById('problem');

function ask(message) {
  problem.textContent = message;
  form.hidden = false;
  field.focus();
}

async function enter(token) {
  try {
    const answer = await fetch('/login', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ token }),
    });
    if (answer.ok) location.reload();
    else ask(answer.status === 401 ? 'This is not the token of this server.' : `The server refused: ${await answer.text()}`);
  } catch {
    ask('The server does not answer.');
  }
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const token = field.value.trim();
  field.value = '';
  problem.textContent = '';
  enter(token);
});

const token = new URLSearchParams(location.hash.slice(1)).get('token');
// A token stays neither in the address nor in the history.
if (token !== null) history.replaceState(null, '', location.pathname);
if (token) enter(token);
else ask('');
