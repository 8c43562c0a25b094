//! What was shown: pages, absolute lines, bounds, searches.

use std::sync::Arc;

use terminal::{ReadPage, ReadRequest, SearchRequest};

use super::{
    Failure, Promise,
    bench::{Bench, failing, needs, refused},
    ensure, ensure_eq,
};

pub(super) const PROMISES: &[Promise] = &[
    Promise {
        name: "read: pages join to the whole, oldest line first",
        check: |it| Box::pin(pages(it)),
    },
    Promise {
        name: "read: a page past the end is empty and no error",
        check: |it| Box::pin(past_the_end(it)),
    },
    Promise {
        name: "read: absolute lines do not move while output arrives",
        check: |it| Box::pin(absolute(it)),
    },
    Promise {
        name: "bounds: what is cut loses its oldest part, and says so",
        check: |it| Box::pin(bounds(it)),
    },
    Promise { name: "search: newest first, or not supported", check: |it| Box::pin(search(it)) },
];

async fn pages(it: Arc<Bench>) -> Result<(), Failure> {
    let count = needs(it.profile.count, "count")?;
    let session = it.session().await?;
    session.send(&count(40)).await?;
    let all = session.read(ReadRequest::newest(0, 500)).await?;
    let lines: Vec<&str> = all.text.split('\n').collect();
    ensure_eq!("the lines of a page of all", lines.len() as u64, all.total_lines);
    ensure_eq!("where it begins", (all.line_begin, all.line_end), (0, all.total_lines));
    ensure!(!all.truncated, "a page of all says that something of it is missing");
    let numbers = lines.iter().filter_map(|line| line.parse::<u64>().ok());
    ensure!(numbers.eq(1..=40), "the numbers from 1 to 40 are not in their order: {lines:?}");
    let mut joined = Vec::new();
    let mut offset = 0;
    while offset < all.total_lines {
        let page = session.read(ReadRequest::newest(offset, 7)).await?;
        let end = (offset + 7).min(all.total_lines);
        ensure_eq!("the bounds of a page", (page.line_begin, page.line_end), (offset, end));
        ensure_eq!("the lines there are", page.total_lines, all.total_lines);
        joined.insert(0, page.text);
        offset = end;
    }
    ensure_eq!("pages of 7 lines, joined", joined.join("\n"), all.text);
    Ok(())
}

async fn past_the_end(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    session.say("alpha").await?;
    let ReadPage { total_lines, .. } = session.read(ReadRequest::default()).await?;
    let page = session.read(ReadRequest::newest(999, 10)).await?;
    ensure_eq!("its text", page.text, "");
    ensure_eq!("its bounds", (page.line_begin, page.line_end), (999, 999));
    ensure_eq!("the lines there are", page.total_lines, total_lines);
    let none = it.terminals.read(&session.agent, &session.id, ReadRequest::newest(0, 0)).await;
    refused("a page of no lines", none, "INVALID_ARGS")?;
    Ok(())
}

async fn absolute(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    session.say("alpha").await?;
    session.say("beta").await?;
    let newest = session.read(ReadRequest::newest(1, 2)).await?;
    let first = newest.first_line;
    let Some(first) = first else {
        return Err(Failure::Broken("a page with lines has no number of its first".to_owned()));
    };
    let at = |line| session.read(ReadRequest::from_line(line, 2));
    let before = at(first).await?;
    ensure_eq!("the same lines by their absolute number", before.text, newest.text);
    ensure_eq!("the number of the first", before.first_line, Some(first));
    session.say("gamma").await?;
    ensure_eq!("the same lines after more output", at(first).await?.text, newest.text);
    Ok(())
}

async fn bounds(it: Arc<Bench>) -> Result<(), Failure> {
    let count = needs(it.profile.count, "count")?;
    let limit = needs(it.profile.max_read_bytes, "max_read_bytes")?;
    let session = it.session().await?;
    // At least two bytes a line.
    let last = limit as u64;
    let outcome = session.send(&count(last)).await?;
    let size = outcome.viewport.len();
    ensure!(size <= limit, "the viewport has {size} bytes, {limit} are allowed");
    ensure!(outcome.truncated, "a viewport that was cut does not say so");
    let newest = format!("\n{last}\n");
    ensure!(
        outcome.viewport.contains(&newest),
        "the newest line is not in the viewport that is left"
    );
    let page = session.read(ReadRequest::newest(0, 2 * last)).await?;
    ensure!(page.text.len() <= limit, "a page has {} bytes, {limit} are allowed", page.text.len());
    ensure!(page.truncated, "a page that was cut does not say so");
    let small = session.read(ReadRequest::newest(0, 3)).await?;
    ensure!(!small.truncated, "a page that is whole says that something is missing");
    let next = session.say("alpha").await?;
    ensure!(!next.truncated, "the next viewport, which is whole, says that something is missing");
    Ok(())
}

async fn search(it: Arc<Bench>) -> Result<(), Failure> {
    let session = it.session().await?;
    for word in ["needle1", "hay", "needle2"] {
        session.say(word).await?;
    }
    let request = SearchRequest::new("^needle.$");
    let found = it.terminals.search(&session.agent, &session.id, request).await;
    if !it.profile.search {
        refused("a search", found, "NOT_SUPPORTED")?;
        return Ok(());
    }
    let found = found.map_err(failing("a search"))?;
    let texts: Vec<&str> = found.matches.iter().map(|it| it.text.as_str()).collect();
    ensure_eq!("the matches", texts, ["needle2", "needle1"]);
    for it in &found.matches {
        let page = session.read(ReadRequest::from_line(it.line, 1)).await?;
        ensure_eq!("the line that a match names", page.text, it.text);
    }
    let malformed = SearchRequest::new("(");
    let refusal = it.terminals.search(&session.agent, &session.id, malformed).await;
    refused("a malformed pattern", refusal, "INVALID_ARGS")?;
    Ok(())
}
