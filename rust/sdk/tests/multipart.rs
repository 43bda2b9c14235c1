//! Multipart forms as browsers and tools send them, and invalid ones.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::wire::frame::{Frame, Kind};

fn parse_with(content_type: &str, body: &[u8]) -> Result<MultipartData, HandlerError> {
    let head = json!({"method": "POST", "target": "/", "headers": ["content-type", content_type]}).to_string();
    let frame = Frame { kind: Kind::Request, number: 1, head: head.as_bytes(), body };
    rust_edge_gateway_sdk::wire::head::request(&frame).unwrap().multipart()
}

fn parse(body: &[u8]) -> Result<MultipartData, HandlerError> {
    parse_with("multipart/form-data; boundary=XX", body)
}

fn refusal(body: &[u8]) -> String {
    let error = parse(body).unwrap_err();
    assert_eq!(error.status_code(), 400);
    error.to_string()
}

#[test]
fn fields_and_files_are_read_apart_and_a_missing_one_is_named() {
    let form = parse(
        b"--XX\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nGr\xc3\xbc\xc3\x9fe\r\nline two\
        \r\n--XX\r\ncontent-disposition: form-data; name=\"photo\"; filename=\"a b.png\"\r\nContent-Type: image/png\r\n\r\n\
        \x89PNG\r\n\x1a\n\0\xff\r\n--XX\r\nContent-Disposition: form-data; name=empty\r\n\r\n\r\n--XX--\r\n",
    )
    .unwrap();
    assert_eq!(form.field("title").unwrap(), "Grüße\r\nline two");
    assert_eq!(form.require_field("empty").unwrap(), "");
    let photo = form.require_file("photo").unwrap();
    assert_eq!((photo.filename.as_str(), photo.content_type.as_str()), ("a b.png", "image/png"));
    assert_eq!(photo.data, b"\x89PNG\r\n\x1a\n\0\xff");
    assert!(form.file("title").is_none() && form.field("photo").is_none());
    assert_eq!(form.require_field("x").unwrap_err().to_string(), "Bad request: Missing required field: x");
    assert_eq!(form.require_file("x").unwrap_err().to_string(), "Bad request: Missing required file: x");
}

#[test]
fn a_file_may_contain_what_looks_like_a_boundary() {
    let data = b"--XXL\r\n\r\n --XX\r\n--XXL\r\n--X\r\n -- \r\n--";
    let mut body = b"--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"\"\r\n\r\n".to_vec();
    body.extend_from_slice(data);
    body.extend_from_slice(b"\r\n--XX--");
    let form = parse(&body).unwrap();
    let file = form.file("f").unwrap();
    assert_eq!(file.data, data);
    assert_eq!(file.content_type, "application/octet-stream");
}

#[test]
fn every_byte_survives() {
    let data: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let mut body = b"--XX\r\nContent-Disposition: form-data; name=f; filename=f\r\n\r\n".to_vec();
    body.extend_from_slice(&data);
    body.extend_from_slice(b"\r\n--XX--\r\n");
    assert!(parse(&body).unwrap().file("f").unwrap().data == data);
}

#[test]
fn preamble_epilogue_and_blanks_are_allowed() {
    let form = parse(
        b"ignore me\r\n--XX \t\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XX--\r\nignore me --XX too",
    );
    assert_eq!(form.unwrap().field("a").unwrap(), "1");
    assert!(parse(b"--XX--\r\n").unwrap().fields.is_empty());
}

#[test]
fn boundaries_are_read_from_the_header() {
    let body = b"--a b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n--a b--";
    for content_type in [
        "multipart/form-data; boundary=\"a b\"",
        "Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"",
        "multipart/form-data;boundary=a b ; x=y",
    ] {
        assert_eq!(parse_with(content_type, body).unwrap().field("x").unwrap(), "1", "{content_type}");
    }
}

#[test]
fn names_may_be_quoted_in_the_ways_of_browsers_and_tools() {
    let name = |disposition: &str| {
        let body = format!("--XX\r\nContent-Disposition: form-data; {disposition}; filename=x\r\n\r\n1\r\n--XX--");
        parse(body.as_bytes()).unwrap().files.into_keys().next().unwrap()
    };
    assert_eq!(name("name=\"a;b=c\""), "a;b=c");
    assert_eq!(name("name=\"say %22hi%22\""), "say \"hi\"");
    assert_eq!(name("name=\"say \\\"hi\\\"\""), "say \"hi\"");
    assert_eq!(name("name=\"C:\\dir\\file\""), "C:\\dir\\file");
    assert_eq!(name("name=\"größe\""), "größe");
}

#[test]
fn what_is_not_a_form_is_refused_with_a_reason() {
    assert!(refusal(b"").contains("its boundary does not occur in it"));
    assert!(refusal(b"--YY\r\n").contains("its boundary does not occur in it"));
    let part = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1";
    assert!(refusal(part.as_bytes()).contains("was the upload cut off?"));
    assert!(refusal(b"--XX\r\nno headers end\r\n--XX--").contains("a part has no end of headers"));
    assert!(refusal(b"--XX\r\nX: y\r\n\r\n1\r\n--XX--").contains("a part has no name"));
    assert!(parse_with("multipart/form-data", b"").unwrap_err().to_string().contains("names no boundary"));
    assert!(parse_with("text/plain", b"").unwrap_err().to_string().contains("multipart/form-data"));
    assert!(parse_with("multipart/form-data; boundary=\"\"", b"").unwrap_err().to_string().contains("1 to 70"));
    let many = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n".repeat(10_001) + "--XX--";
    assert!(refusal(many.as_bytes()).contains("more than 10000 parts"));
}

#[test]
fn a_form_cut_anywhere_is_refused_or_read_but_never_panics() {
    let whole: &[u8] = b"--XX\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\n\xff\r\n--XX--";
    for cut in 0..whole.len() {
        assert!(parse(&whole[..cut]).is_err(), "{cut}");
        let _ = parse(&whole[cut..]);
    }
}

#[test]
fn several_parts_of_one_name_are_all_kept_and_the_last_one_counts() {
    let part = |name: &str, more: &str, data: &str| {
        format!("--XX\r\nContent-Disposition: form-data; name={name}{more}\r\n\r\n{data}\r\n")
    };
    let file = "; filename=f\r\nContent-Type: image/png";
    let json = "; filename=blob\r\nContent-Type: application/json";
    let parts = [
        part("tag", "", "a"),
        part("photo", file, "1"),
        part("tag", "", "b"),
        part("photo", file, "22"),
        part("tag", "", ""),
        part("photo", file, "333"),
        part("meta", json, "{}"),
        "--XX--".to_owned(),
    ];
    let form = parse(parts.concat().as_bytes()).unwrap();
    assert_eq!(form.fields_named("tag"), ["a", "b", ""]);
    assert_eq!(form.files_named("photo").iter().map(|file| file.data.len()).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((form.field("tag").unwrap().as_str(), form.file("photo").unwrap().data.len()), ("", 3));
    assert!(form.fields_named("photo").is_empty() && form.files_named("tag").is_empty());
    assert_eq!((form.pairs().get_all("tag"), form.pairs().get("meta")), (vec!["a", "b", ""], Some("{}")));
    assert_eq!(form.pairs().get("photo"), None);
    let info = json!({"filename": "f", "content_type": "image/png", "bytes": 3});
    assert_eq!(json!(form.file("photo")), info);
}
