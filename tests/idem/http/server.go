
// ---- the service of the test; the function above is the page's ----

func orders(tx *sql.Tx, body string) (int, []byte, error) {
	var told string
	switch body {
	case "boom":
		tx.Exec("INSERT INTO orders VALUES ('boom')")
		return 0, nil, errors.New("boom")
	case "declined":
		return 402, []byte("the card was declined"), nil
	case "huge":
		return 200, make([]byte, 1024*1024+1), nil
	case "slow":
		tx.Exec("SELECT pg_advisory_xact_lock(4711)") // until the test lets go
	}
	err := tx.QueryRow("INSERT INTO orders VALUES ($1) RETURNING 'order ' || (SELECT count(*) + 1 FROM orders)", body).Scan(&told)
	return 201, []byte(told), err
}

func account(tx *sql.Tx, body string) (int, []byte, error) {
	_, err := tx.Exec("UPDATE account SET v = $1", body)
	return 200, []byte("written"), err
}

func main() {
	db, _ := sql.Open("postgres", os.Getenv("DSN"))
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		scope := r.Header.Get("Authorization") + " POST " + r.URL.Path
		tx, err := db.Begin()
		status, told := 500, []byte(nil)
		switch {
		case err != nil:
		case r.URL.Path == "/orders":
			status, told, err = idempotent(tx, scope, "", r, body, func(tx *sql.Tx) (int, []byte, error) { return orders(tx, string(body)) })
		case r.URL.Path == "/account":
			status, told, err = idempotent(tx, scope, "account", r, body, func(tx *sql.Tx) (int, []byte, error) { return account(tx, string(body)) })
		default: // without the check
			_, err = tx.Exec("UPDATE plain SET v = $1", string(body))
			status = 200
			tx.Commit()
		}
		if err != nil {
			status = 500
		}
		if status == 409 {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		w.Write(told)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	http.Serve(listener, nil)
}
