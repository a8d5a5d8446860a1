// Stores two memories and recalls the relevant one. The server is at $ASTROCYTE_ADDRESS, by default localhost:50051.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"astrocyte.dev/go"
	pb "astrocyte.dev/go/astrocytev1"
)

func main() {
	client, err := astrocyte.Connect(cmp.Or(os.Getenv("ASTROCYTE_ADDRESS"), "localhost:50051"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx := context.Background()

	for _, content := range []string{"Mara is allergic to sesame, not to nuts.", "Mara plays the cello."} {
		if _, err := client.Retain(ctx, &pb.RetainRequest{BankId: "family-go", Content: content}); err != nil {
			log.Fatal(err)
		}
	}
	found, err := client.Recall(ctx, &pb.RecallRequest{BankId: "family-go", Query: "what is Mara allergic to?"})
	if err != nil {
		log.Fatal(err)
	}
	for _, hit := range found.GetHits() {
		fmt.Printf("%.2f  %s\n", hit.GetScore(), hit.GetText())
	}
}
